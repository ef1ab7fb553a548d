#!/usr/bin/env bash
# Opens the GLB files that gpuproc writes with the Khronos glTF validator and with three.js. Needs Node.js and npm, which
# downloads both.
#
#   tests/gltf/run.sh [PROGRAM]        builds gpuproc if no PROGRAM is given
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -ge 1 ]; then
    program=$1
else
    cargo build --quiet --locked
    program=${CARGO_TARGET_DIR:-target}/debug/gpuproc
fi
program=$(realpath "$program")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp tests/gltf/package.json tests/gltf/check.mjs "$folder"
npm install --silent --no-fund --no-audit --prefix "$folder"
(cd "$folder" && node check.mjs "$program")
