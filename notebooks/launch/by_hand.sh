#!/usr/bin/env bash
# Run this on every machine within a few minutes. The first one is NODE=0:
#
#   HEAD=node1 NODES=2 NODE=0 PROCESSES=8 bash by_hand.sh --backend nccl
#   HEAD=node1 NODES=2 NODE=1 PROCESSES=8 bash by_hand.sh --backend nccl
#
# HEAD       name or address of machine 0, as the others know it
# NODES      how many machines take part
# NODE       the number of this machine, from 0
# PROCESSES  processes on each machine: one for each GPU (default: 1)
# PORT       a TCP port of machine 0 that is free, and that the others can reach
# TIMEOUT    seconds that a machine waits for the others (default: 900)
set -eu
: "${HEAD:?is the name or address of machine 0}"
: "${NODES:?is the number of machines}" "${NODE:?is the number of this one}"
PORT=${PORT:-29500} TIMEOUT=${TIMEOUT:-900}
# torchrun would try to look up a wrong name for minutes.
if command -v getent > /dev/null && ! getent ahosts "$HEAD" > /dev/null; then
  echo "by_hand.sh: HEAD=$HEAD has no address on this machine. Give a name" \
    "for which 'getent ahosts' prints an address, or the address" >&2
  exit 1
fi
if [ "$NODE" = 0 ] && [ "$NODES" -gt 1 ]; then
  others=NODE=1
  [ "$NODES" -gt 2 ] && others="NODE=1 to NODE=$((NODES - 1))"
  echo "machine 0 waits at $HEAD:$PORT for $others, $TIMEOUT s at most" >&2
fi
cd "$(dirname "$0")"
exec torchrun --nnodes "$NODES" --node-rank "$NODE" \
  --nproc-per-node "${PROCESSES:-1}" \
  --master-addr "$HEAD" --master-port "$PORT" \
  --rdzv-conf "timeout=$TIMEOUT" train.py "$@"
