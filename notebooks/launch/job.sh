#!/usr/bin/env bash
# The same as a job of Slurm: sbatch job.sh
#SBATCH --job-name=first
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=00:10:00
#SBATCH --output=%x-%j.txt
# One task on each machine: a torchrun, which starts a process for each GPU.
set -eu
HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export HEAD NODES=$SLURM_JOB_NUM_NODES PROCESSES=${SLURM_GPUS_ON_NODE:-1}
export PORT=$((20000 + SLURM_JOB_ID % 10000))  # another one for each job
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # not inherited
srun bash -c 'NODE=$SLURM_NODEID bash by_hand.sh "$@"' - \
  --backend "${BACKEND:-nccl}" "$@"
