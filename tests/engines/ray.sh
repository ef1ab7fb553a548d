#!/bin/sh
# Ray Data: a dataset of shard numbers. Ray restarts tasks whose worker dies; some workers are killed.
cat > tasks.py <<'END'
import os, subprocess, sys
import ray

N = int(sys.argv[1])
os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")


def shard(row):
    i = row["id"]
    # The first try of some shards kills its worker.
    os.chdir(os.environ["SHARDS_IN"])
    if i % (N // 2 or 1) == 1 and not os.path.exists(f"worker-{i}"):
        open(f"worker-{i}", "w").close()
        os.kill(os.getpid(), 9)
    command = [os.environ["ENGINES"] + "/shard.sh", str(i), str(N)]
    for left in range(3, 0, -1):
        if subprocess.run(command, check=left == 1).returncode == 0:
            return row


if __name__ == "__main__":
    os.environ["SHARDS_IN"] = os.getcwd()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": {name: os.environ[name] for name in ("ENGINES", "SHARDS_IN", "PATH", "GPUPROC_DEVICE")}})
    done = len(ray.data.range(N, override_num_blocks=N).map(shard).take_all())
    print(f"{done} shards")
END
exec python3 tasks.py "$1"
