#!/bin/sh
# shard.sh I N: runs shard I of N of every job in the current folder. Every fourth shard is killed at its first try, and the
# engine must retry it.
set -e
if [ $(($1 % 4)) = 1 ] && [ ! -e "tried-$1" ]; then
    : > "tried-$1"
    timeout -s KILL 0.02 gpuproc mesh in.raw "mesh-$1.part" --dims 64x64x64 --dtype u8 --iso 80 --shard "$1/$2" --resume
    exit 1
fi
gpuproc mesh in.raw "mesh-$1.part" --dims 64x64x64 --dtype u8 --iso 80 --shard "$1/$2" --resume
gpuproc histogram in.raw -o "counts-$1.part" --dims 64x64x64 --dtype u8 --shard "$1/$2" --resume
gpuproc blur in.raw soft.raw --dims 64x64x64 --dtype u8 --sigma 1.5 --shard "$1/$2"
gpuproc blur --files-from pictures.txt --out-dir soft --sigma 1.5 --shard "$1/$2" --resume
