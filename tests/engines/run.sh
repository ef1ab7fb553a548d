#!/bin/sh
# run.sh [ENGINE...]: runs shards of a volume and of 1,000 images under workflow engines (default: xargs, parallel, slurm,
# snakemake, dask, ray), kills some of them, and compares the results with those of one process.
#
# The program is $GPUPROC_BIN, or the one on the PATH. The engines need: apt-get install parallel slurm-wlm (as root);
# pip install snakemake distributed "ray[data]". The variables SHARDS (64), PICTURES (1000) and JOBS_FOLDER may be set.
set -e
ENGINES=$(cd "$(dirname "$0")" && pwd)
export ENGINES
root=$ENGINES/../..
shards=${SHARDS:-64}
pictures=${PICTURES:-1000}
work=$(TMPDIR=${JOBS_FOLDER:-/tmp} mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
if [ -n "$GPUPROC_BIN" ]; then
    mkdir "$work/bin"
    ln -s "$(realpath "$GPUPROC_BIN")" "$work/bin/gpuproc"
    PATH=$work/bin:$PATH
fi
export PATH GPUPROC_DEVICE="${GPUPROC_DEVICE:-cpu}"

# The images are excerpts of the volume.
cp "$root/fixtures/skull_64x64x64_uint8.raw" "$work/in.raw"
mkdir "$work/pictures"
i=0
while [ $i -lt "$pictures" ]; do
    { printf 'P5 64 48 255\n'; tail -c +$((i * 250 + 1)) "$work/in.raw" | head -c 3072; } > "$work/pictures/$i.pgm"
    echo "pictures/$i.pgm"
    i=$((i + 1))
done > "$work/pictures.txt"

hash() { # Hashes all results in the current folder.
    { sha256sum < skull.ply; sha256sum < counts.json; sha256sum < soft.raw; cat $(sed 's,^,soft/,' pictures.txt) | sha256sum; } \
        | sha256sum | cut -c 1-16
}
enter_job_folder() { # Creates and enters the folder of an engine, with links to the inputs.
    mkdir "$work/$1"
    cd "$work/$1"
    ln -s ../in.raw ../pictures ../pictures.txt .
}

enter_job_folder one
gpuproc mesh in.raw skull.ply --dims 64x64x64 --dtype u8 --iso 80 -q
gpuproc histogram in.raw -o counts.json --dims 64x64x64 --dtype u8
gpuproc blur in.raw soft.raw --dims 64x64x64 --dtype u8 --sigma 1.5 -q
gpuproc blur --files-from pictures.txt --out-dir soft --sigma 1.5
expected=$(hash)
echo "one process: $expected"

failed=
for engine in ${@:-xargs parallel slurm snakemake dask ray}; do
    enter_job_folder "$engine"
    if ! "$ENGINES/$engine.sh" "$shards" > log 2>&1; then
        tail -20 log
        failed="$failed $engine"
        continue
    fi
    gpuproc merge mesh-*.part -o skull.ply -q
    gpuproc merge counts-*.part -o counts.json
    found=$(hash)
    echo "$engine, $shards shards, $(ls tried-* | wc -l) killed: $found"
    [ "$found" = "$expected" ] || failed="$failed $engine"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
