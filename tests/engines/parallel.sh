#!/bin/sh
# GNU parallel: failed shards are run again.
run() { seq 0 $(($1 - 1)) | parallel --will-cite -j 2 --joblog joblog "$2" "$ENGINES/shard.sh" {} "$1"; }
run "$1" --resume || until run "$1" --resume-failed; do sleep 0.1; done
