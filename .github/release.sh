#!/usr/bin/env bash
# Builds what a release is made of into a folder, target/release-files unless another is named:
#
#   gpuproc-VERSION-TARGET.tar.gz    the program, manual pages, completions (also for cargo binstall)
#   gpuproc-VERSION.crate            for crates.io; all else is built of what is in it
#   *.deb, *.rpm, *.whl              where cargo-deb, cargo-generate-rpm and maturin are there
#   gpuproc-VERSION.cdx.json         what it is made of (CycloneDX)
#   SHA256SUMS
#
#   PROFILE=release    a faster build than `dist`
#   TARGET=x86_64-unknown-linux-musl    another target; that one is static, for the CPU alone: a static program
#                                       cannot open Vulkan's loader
#   PROGRAM=FILE       packs this program and builds none: the crate is not tried, and no wheel is made
#
# What is missing is told, and an error at the end unless PARTIAL=1.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(realpath -m "${1:-target/release-files}")
profile=${PROFILE:-dist}
host=$(rustc -vV | sed -n 's/^host: //p')
target=${TARGET:-$host}
version=$(cargo metadata --locked --no-deps --format-version 1 | jq -r '.packages[] | select(.name == "gpuproc").version')
: "${GPUPROC_COMMIT:=$(git describe --always --dirty --abbrev=9 --exclude='*' 2>/dev/null || true)}"
export GPUPROC_COMMIT
missing=()

rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The crate is what users build of. So is the program here, by `cargo install`, which shows that nothing is missing.
cargo package --locked --allow-dirty --no-verify --target-dir "$work/crate"
cp "$work/crate/package/gpuproc-$version.crate" "$out/"
tar -C "$work" -xzf "$out/gpuproc-$version.crate"
sources=$work/gpuproc-$version built=$(realpath -m "${CARGO_TARGET_DIR:-target}")
if [ -n "${PROGRAM:-}" ]; then
    program=$(realpath "$PROGRAM")
else
    cargo install --locked --path "$sources" --profile "$profile" --target "$target" --target-dir "$built" \
        --root "$work/installed" --no-track
    program=$work/installed/bin/gpuproc
fi

# The manual and the completions are the program's own words.
share=target/packages
rm -rf $share
mkdir -p $share/completions
"$program" man $share/man
"$program" completions bash > $share/completions/gpuproc
"$program" completions zsh > $share/completions/_gpuproc
"$program" completions fish > $share/completions/gpuproc.fish
"$program" completions powershell > $share/completions/gpuproc.ps1

name=gpuproc-$version-$target
mkdir "$work/$name"
cp "$program" "$work/$name/gpuproc"
cp README.md LICENSE "$work/$name/"
cp -r $share/man $share/completions "$work/$name/"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/$name.tar.gz" "$name"

# Packages take the program from a target folder: one that holds nothing else.
mkdir -p "$work/target/release"
cp "$program" "$work/target/release/gpuproc"
if command -v cargo-deb > /dev/null; then
    CARGO_TARGET_DIR=$work/target cargo deb --no-build --output "$out/"
else
    missing+=(cargo-deb)
fi
if command -v cargo-generate-rpm > /dev/null; then
    cargo generate-rpm --target-dir "$work/target" --output "$out/"
else
    missing+=(cargo-generate-rpm)
fi
if [ -n "${PROGRAM:-}" ]; then
    :
elif command -v maturin > /dev/null; then
    # The Python module, which is also the program.
    (cd "$sources/src/python" && maturin build --locked --profile "$profile" --target "$target" --target-dir "$built" --out "$out")
else
    missing+=(maturin)
fi

# What the program is made of: the crates of Cargo.lock that this target takes, without those of tests.
cargo tree --locked --target "$target" --edges normal,build --prefix none --format '{p}' |
    awk '{ print $1 "@" substr($2, 2) }' > "$work/crates"
cargo metadata --locked --format-version 1 --filter-platform "$target" > "$work/metadata.json"
jq --arg version "$version" --rawfile crates "$work/crates" '
    ($crates | split("\n")) as $crates
    | {
        bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
        metadata: {component: {type: "application", name: "gpuproc", version: $version}},
        components: [.packages[] | select("\(.name)@\(.version)" | IN($crates[])) | select(.name != "gpuproc") | {
            type: "library", name, version, purl: "pkg:cargo/\(.name)@\(.version)",
            licenses: (if .license then [{expression: (.license | gsub("/"; " OR "))}] else [] end)
        }] | sort_by(.name, .version)
    }' "$work/metadata.json" > "$out/gpuproc-$version.cdx.json"

(cd "$out" && sha256sum -- * > "$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
ls -l "$out"
if [ ${#missing[@]} -gt 0 ]; then
    echo "not made, since these are not installed: ${missing[*]}" >&2
    [ "${PARTIAL:-}" = 1 ]
fi
