#!/bin/sh
# Trains a spec on two nodes, and requeues itself until the run is complete.
# Usage: sbatch docs/launch/sbatch.sh SPEC [KEY=VALUE ...]
#SBATCH --job-name=dptrain
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=dptrain-%j.log

# The secret by which the nodes know each other, in a home directory that all of them have. On a closed network, none is
# needed: DPTRAIN_TRUST_NETWORK=1 sbatch ...
if [ "${DPTRAIN_TRUST_NETWORK:-}" != 1 ]; then
  export DPTRAIN_SECRET_FILE="${DPTRAIN_SECRET_FILE:-$HOME/.config/dptrain/secret}"
fi

# Without this, srun gives each task one core (since SLURM 22.05).
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
code=0
srun --distribution=block --kill-on-bad-exit=0 dptrain "$@" --resume auto || code=$?
[ "$code" = 75 ] && scontrol requeue "$SLURM_JOB_ID"
exit "$code"
