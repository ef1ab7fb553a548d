#!/usr/bin/env bash
# Opens the pages that the program writes in a browser without a window, and tries what a user does. Needs Chromium
# (Debian: apt-get install chromium) and Python; the browser draws and computes in software.
#
#   tests/browser/run.sh [PROGRAM]        the program is built unless it is named
#   GPUPROC_TEST_PICTURES=DIR             keeps the pictures of the pages
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -ge 1 ]; then
    program=$1
else
    cargo build --quiet --locked
    program=${CARGO_TARGET_DIR:-target}/debug/gpuproc
fi
exec python3 tests/browser/pages.py "$(realpath "$program")"
