#!/bin/sh
# Dask: a cluster of worker processes, two of which are killed while shards run.
cat > cluster.py <<'END'
import os, signal, subprocess, sys, time
from dask.distributed import Client, LocalCluster, as_completed

N = int(sys.argv[1])

def shard(i):
    subprocess.run([os.environ["ENGINES"] + "/shard.sh", str(i), str(N)], check=True)
    return i

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        futures = client.map(shard, range(N), retries=5, pure=False)
        killed = 0
        for done, future in enumerate(as_completed(futures)):
            future.result()
            if killed < 2 and done == (killed + 1) * N // 4:
                os.kill(list(client.run(os.getpid).values())[0], signal.SIGKILL)
                killed += 1
        print(f"{N} shards, {killed} workers killed")
END
exec python3 cluster.py "$1"
