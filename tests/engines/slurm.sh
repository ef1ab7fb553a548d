#!/bin/sh
# Slurm: a job array on a temporary controller and node on this host (as root; apt-get install slurm-wlm).
set -e
host=$(hostname -s)
here=$PWD
mkdir -p slurm/state slurm/spool
[ -e slurm/key ] || head -c 1024 /dev/urandom > slurm/key
chmod 600 slurm/key
chown -R munge: slurm/key 2>/dev/null || true
install -d -o munge slurm/munge 2>/dev/null || mkdir -p slurm/munge
chmod 755 slurm slurm/munge "$here"
cat > slurm/slurm.conf <<END
ClusterName=test
SlurmctldHost=$host
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$here/slurm/munge/socket
StateSaveLocation=$here/slurm/state
SlurmdSpoolDir=$here/slurm/spool
SlurmctldPidFile=$here/slurm/slurmctld.pid
SlurmdPidFile=$here/slurm/slurmd.pid
SlurmctldLogFile=$here/slurm/slurmctld.log
SlurmdLogFile=$here/slurm/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MaxArraySize=1001
NodeName=$host CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$here/slurm/slurm.conf
setpriv --reuid=munge --regid=munge --clear-groups munged --key-file="$here/slurm/key" --socket="$here/slurm/munge/socket" \
    --pid-file="$here/slurm/munge/pid" --log-file="$here/slurm/munge/log" --seed-file="$here/slurm/munge/seed" --force
slurmctld -c
slurmd
stop() {
    for pid in slurm/slurmd.pid slurm/slurmctld.pid slurm/munge/pid; do
        [ -e "$pid" ] && kill "$(cat "$pid")" || true
    done
}
trap stop EXIT
cat > job.sh <<'END'
#!/bin/sh
exec "$ENGINES/shard.sh" "$SLURM_ARRAY_TASK_ID" "$SHARDS"
END
# --wait exits with the highest exit code of the array. Retries skip finished shards because of --resume.
tries=0
until SHARDS=$1 sbatch --wait --array="0-$(($1 - 1))" --output=/dev/null job.sh; do
    tries=$((tries + 1))
    [ "$tries" -lt 5 ]
done
