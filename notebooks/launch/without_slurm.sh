#!/usr/bin/env bash
# Runs job.sh where there is no Slurm: two functions stand for its commands.
# Slurm runs a job's script on the first machine, and what follows srun on all
# of them. Here each machine runs the script, and srun is a plain call.
#
#   python -m d2lps cluster --num-servers 0 --bandwidth 125e6 \
#     launch/without_slurm.sh --steps 10
set -eu
cd "$(dirname "$0")"
scontrol() { echo "$HEAD"; }
srun() { SLURM_NODEID=$NODE "$@"; }
export -f scontrol srun
export SLURM_JOB_ID=1 SLURM_JOB_NODELIST=node[0-1] SLURM_JOB_NUM_NODES=$NODES
export SLURM_GPUS_ON_NODE=${PROCESSES:-1} BACKEND=gloo
exec bash job.sh "$@"
