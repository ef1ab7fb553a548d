#!/usr/bin/env bash
# Fuzzes every target one after the other, starting from the suite's seeds (cargo-fuzz must be installed):
#
#   tests/fuzz/run.sh [SECONDS_PER_TARGET] [TARGET...]
#
# Stable Rust is enough. Inputs that fail are written to tests/fuzz/artifacts. The suite runs the same targets for a short
# time on reproducible mutations (tests/suite/fuzz.rs).
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-600}
shift || true
targets=("$@")
if [ ${#targets[@]} = 0 ]; then targets=(arguments text npy png jpeg exr tiff blur histogram scan mesh volume zarr part); fi

(cd ../.. && GPUPROC_FUZZ_SEEDS="$PWD/tests/fuzz/corpus" cargo test --test suite fuzz::every_target_has_seeds)
cargo fetch --locked
# libFuzzer's coverage needs unstable compiler flags. Set only here, because it would make cargo rebuild the suite.
export RUSTC_BOOTSTRAP=1
found=0
for target in "${targets[@]}"; do
    # The address sanitizer finds nothing in safe code and halves the speed.
    cargo fuzz run --fuzz-dir . --sanitizer none "$target" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 ||
        found=1
done
exit $found
