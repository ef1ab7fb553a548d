#!/usr/bin/env bash
# run.sh [PYTEST ARGUMENT...]: builds the wheel, installs it into a new virtual environment, and runs the tests of the Python
# module: our own, the examples of its documentation, and the tests of SciPy and scikit-image against it.
#
#   PYTHON=python3.12     another interpreter
#   PROFILE=dist          another profile of the build
#   WHEEL=FILE            tests this wheel and builds none
#   GPUPROC_DEVICE=0      another device than the CPU
set -euo pipefail
cd "$(dirname "$0")/../.."
export GPUPROC_DEVICE="${GPUPROC_DEVICE:-cpu}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
if [ -z "${WHEEL:-}" ]; then
    pip maturin
    (cd src/python && "$work/venv/bin/maturin" build --locked --profile "${PROFILE:-dev}" --out "$work")
    WHEEL=$(echo "$work"/*.whl)
fi
# 0.25 is the last version of scikit-image whose wheel holds its tests.
pip "$WHEEL" numpy scipy "scikit-image<0.26" pytest hypothesis pooch dask nibabel mypy
echo "wheel: $(stat -c %s "$WHEEL") bytes"
cp -r tests/python "$work/tests"
cp src/guide/python.md "$work/tests"
cd "$work/tests"
PATH=$work/venv/bin:$PATH "$work/venv/bin/python" -m pytest -q -p no:cacheprovider . "$@"
"$work/venv/bin/python" peers.py --check
