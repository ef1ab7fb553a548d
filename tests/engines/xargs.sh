#!/bin/sh
# Without an engine: xargs, repeated until no shard fails.
until seq 0 $(($1 - 1)) | xargs -P 2 -I{} "$ENGINES/shard.sh" {} "$1"; do sleep 0.1; done
