#!/usr/bin/env bash
# Opens the GLB files that the program writes with the Khronos glTF validator and with three.js. Needs Node.js and npm, which
# fetches both.
#
#   tests/gltf/run.sh [PROGRAM]        the program is built unless it is named
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
