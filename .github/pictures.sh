#!/usr/bin/env bash
# Makes the pictures of README.md anew, from the skull in fixtures and from `.github/pictures/portrait.jpg`: NASA's portrait of
# Eileen Collins, in the public domain. Chromium (Debian: apt-get install chromium) shows the page.
#
#   .github/pictures.sh [PROGRAM]        the program is built unless it is named
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -ge 1 ]; then
    program=$(realpath "$1")
else
    cargo build --quiet --locked --release
    program=${CARGO_TARGET_DIR:-target}/release/gpuproc
fi
export GPUPROC_DEVICE=cpu
skull=fixtures/skull_64x64x64_uint8.raw pictures=.github/pictures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" mesh $skull "$work/skull.ply" --iso 80 --preview fixtures/skull.png --size 640x640 -q
"$program" blur $pictures/portrait.jpg -o $pictures/soft.jpg --sigma 8 --quality 85 -q
"$program" histogram $pictures/portrait.jpg -o $pictures/histogram.png --size 640x480 -q
"$program" mesh $skull --iso 80,140 -o "$work/skull.html" -q
PYTHONPATH=tests/browser python3 - "$work" <<'PYTHON'
import sys
from devtools import Browser
with Browser(size=(900, 700)) as browser:
    browser.resize(900, 675)
    browser.open(sys.argv[1] + "/skull.html")
    browser.until("true")
    browser.settle(1)
    browser.picture(sys.argv[1] + "/page.png")
PYTHON
"$program" blur "$work/page.png" -o $pictures/page.jpg --sigma 0 --quality 85 -q
ls -l fixtures/skull.png $pictures
