"""Runs the tests of SciPy and scikit-image, from their installed packages, on gpuproc (peers_shim.py).

    peers.py            writes the table peers.tsv: outcome, test, reason
    peers.py --check    fails if a test fails that is not among DIFFERENCES, or is skipped and passes in the table
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SUITES = [
    "scipy.ndimage.tests.test_filters",
    "skimage.filters.tests.test_gaussian",
    "skimage.measure.tests.test_marching_cubes",
    "skimage.transform.tests.test_integral",
    "skimage.exposure.tests.test_exposure",
]
# Tests that fail because gpuproc differs, as its guide says.
DIFFERENCES = {
    "scipy.ndimage.tests.test_filters::test_multiple_modes_sequentially[numpy]":
        "the test compares floats for equality; SciPy sums in another order",
    "skimage.filters.tests.test_gaussian::test_4d_ok": "four axes need channel_axis",
    "skimage.filters.tests.test_gaussian::test_output_error": "another text of the error for an `out` of another type",
    "skimage.filters.tests.test_gaussian::test_preserve_range":
        "the test compares floats for equality; the weights of float64 sum to 1 + 2^-52",
    "skimage.exposure.tests.test_exposure::test_dask_histogram": "results are arrays of NumPy, also for those of Dask",
    "skimage.measure.tests.test_marching_cubes::test_both_algs_same_result_donut":
        "both topologies give the same mesh of this volume; the test wants them to differ",
    "skimage.measure.tests.test_marching_cubes::test_invalid_input":
        "an empty surface is a result: of a level beyond the range of the samples, or of a volume without cells",
}
TABLE = pathlib.Path(__file__).with_name("peers.tsv")


def run(suite):
    """The outcome and the reason of each test that reaches a function of gpuproc."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder, "results.json")
        here = str(pathlib.Path(__file__).parent)
        path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        settings = {**os.environ, "PEERS_RESULTS": str(results), "PYTHONPATH": path}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "peers_shim", "-p", "no:cacheprovider", "--pyargs", suite]
        done = subprocess.run(command, env=settings, cwd=folder, capture_output=True, text=True)
        if not results.exists():
            sys.exit(f"{suite}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        found = json.loads(results.read_text())
    # Numbers in messages depend on the machine, names of tests do not.
    return {f"{suite}::{name.split('::', 1)[1]}": value for name, value in found.items()}


def main():
    found = {}
    for suite in SUITES:
        found.update(run(suite))
        counts = [sum(outcome == wanted for name, (outcome, _) in found.items() if name.startswith(suite))
                  for wanted in ("passed", "skipped", "failed")]
        print(suite, *(f"{count} {what}" for count, what in zip(counts, ("passed", "skipped", "failed"))))
    wrong = [f"{name}: {reason}" for name, (outcome, reason) in found.items()
             if outcome == "failed" and name not in DIFFERENCES]
    if "--check" in sys.argv:
        rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
        wrong += [f"{row[1]} is skipped" for row in rows
                  if row[0] == "passed" and found.get(row[1], ("skipped", ""))[0] == "skipped"]
        sys.exit("\n".join(wrong) if wrong else 0)
    lines = ["# outcome\ttest\treason"]
    for name, (outcome, reason) in sorted(found.items()):
        reason = DIFFERENCES.get(name, reason) if outcome == "failed" else reason
        lines.append("\t".join([outcome, name, re.sub(r"\s+", " ", reason)]).rstrip())
    TABLE.write_text("\n".join(lines) + "\n")


main()
