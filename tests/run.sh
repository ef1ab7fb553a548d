#!/usr/bin/env bash
# Runs the whole test suite, CPU and GPU. Where there is no Vulkan driver, the software one is installed
# (Debian, Ubuntu) or named (elsewhere).
#
# GPUPROC_REQUIRE_GPU=1 makes a missing driver a failure; without it tests that need one are ignored.
set -euo pipefail
cd "$(dirname "$0")/.."

has_driver() {
    compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null ||
        compgen -G '/etc/vulkan/icd.d/*.json' >/dev/null ||
        compgen -G '/usr/local/share/vulkan/icd.d/*.json' >/dev/null ||
        [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ]
}

has_loader() {
    # Not -q: it would break ldconfig's pipe, which counts as a failure here.
    ldconfig -p 2>/dev/null | grep 'libvulkan\.so\.1' >/dev/null
}

if [ "$(uname -s)" = Linux ] && ! { has_driver && has_loader; }; then
    install=(apt-get install -y --no-install-recommends mesa-vulkan-drivers libvulkan1)
    if ! command -v apt-get >/dev/null; then
        echo "No Vulkan driver found. Install one to test the GPU side:" >&2
        echo "  Fedora: dnf install mesa-vulkan-drivers vulkan-loader" >&2
        echo "  Arch:   pacman -S vulkan-swrast vulkan-icd-loader" >&2
    elif [ "$(id -u)" = 0 ]; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive "${install[@]}"
    elif sudo -n true 2>/dev/null; then
        sudo apt-get update -qq
        sudo DEBIAN_FRONTEND=noninteractive "${install[@]}"
    else
        echo "No Vulkan driver found. To test the GPU side:  sudo ${install[*]}" >&2
    fi
fi

if [ $# != 0 ]; then
    exec cargo test --locked "$@"
fi
# The unit tests of the library, which run for 40 CPU seconds without optimisation. With it, they would take 180 more to
# compile.
unit_tests=$(cargo rustc --locked --lib --profile test --message-format json-render-diagnostics -- -C opt-level=0 |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
"$unit_tests"
cargo test --locked --test suite
cargo test --locked --doc
