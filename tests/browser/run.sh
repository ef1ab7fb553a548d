#!/usr/bin/env bash
# Opens the pages that gpuproc writes in a headless browser and uses them with pointer, touch and keyboard. Needs
# Chromium (Debian: apt-get install chromium) and Python. The browser renders and computes in software.
#
#   tests/browser/run.sh [PROGRAM]        builds gpuproc if no PROGRAM is given
#   GPUPROC_TEST_PICTURES=DIR             saves screenshots of the pages
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -ge 1 ]; then
    program=$1
else
    cargo build --quiet --locked
    program=${CARGO_TARGET_DIR:-target}/debug/gpuproc
fi
exec python3 tests/browser/pages.py "$(realpath "$program")"
