#!/usr/bin/env bash
# Run this on every machine within a few minutes. The first one is NODE=0:
#
#   HEAD=node1 NODES=2 NODE=0 PROCESSES=8 bash by_hand.sh --backend nccl
#   HEAD=node1 NODES=2 NODE=1 PROCESSES=8 bash by_hand.sh --backend nccl
#
# HEAD       name or address of machine 0, as the others know it
# NODES      how many machines take part
# NODE       the number of this machine, from 0
# PROCESSES  processes on each machine: one for each GPU (default: 2)
# PORT       a TCP port of machine 0 that is free, and that the others can reach
set -eu
: "${HEAD:?is the name or address of machine 0}"
: "${NODES:?is the number of machines}" "${NODE:?is the number of this one}"
cd "$(dirname "$0")"
exec torchrun --nnodes "$NODES" --node-rank "$NODE" \
  --nproc-per-node "${PROCESSES:-2}" \
  --master-addr "$HEAD" --master-port "${PORT:-29500}" train.py "$@"
