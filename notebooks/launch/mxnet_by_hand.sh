#!/usr/bin/env bash
# MXNet's parameter server on several machines, without d2lps. Run this once
# for each process, the scheduler last. Before, read docs/several-machines.md:
#
#   export PATH=~/d2lps/.venv/bin:$PATH HEAD=10.0.0.1 SERVERS=1 WORKERS=2
#   ROLE=server bash mxnet_by_hand.sh
#   ROLE=worker bash mxnet_by_hand.sh mine.py --lr 0.1
#   ROLE=worker bash mxnet_by_hand.sh mine.py --lr 0.1
#   ROLE=scheduler bash mxnet_by_hand.sh
#
# HEAD     IPv4 address of the scheduler's machine, as the others reach it
# SERVERS  how many servers take part
# WORKERS  how many workers take part
# ROLE     of this process: scheduler, server or worker
# ADDRESS  IPv4 address of this machine, if it has several network cards
# PORT     a TCP port of HEAD that is free, and that the others can reach
# WAIT     seconds until the scheduler begins (default: 5)
set -eu
: "${HEAD:?is the IPv4 address of the scheduler}"
: "${SERVERS:?is the number of servers}" "${WORKERS:?is the number of workers}"
# With a name, the scheduler fails ("bind failed"), and the others wait forever.
if [[ ! $HEAD =~ ^[0-9]+(\.[0-9]+){3}$ ]]; then
  echo "mxnet_by_hand.sh: HEAD=$HEAD is no IPv4 address such as 10.0.0.1" >&2
  exit 1
fi
case "${ROLE:?is scheduler, server or worker}" in
  scheduler | server) set -- -c 'import mxnet' ;;
  worker) : "${1:?is the script of a worker}" ;;
  *) echo "mxnet_by_hand.sh: ROLE=$ROLE is no role of MXNet" >&2; exit 1 ;;
esac
export DMLC_ROLE=$ROLE DMLC_PS_ROOT_URI=$HEAD DMLC_PS_ROOT_PORT=${PORT:-29501}
export DMLC_NUM_SERVER=$SERVERS DMLC_NUM_WORKER=$WORKERS
export DMLC_NODE_HOST=${ADDRESS:-}  # if it is empty, ps-lite takes a card's
unset PORT  # on this port, ps-lite would listen in every role
echo "$ROLE: everybody who can reach its TCP ports can run programs as you" >&2
if [ "$ROLE" = scheduler ]; then
  echo "it waits at $HEAD:$DMLC_PS_ROOT_PORT for the servers ($SERVERS) and" \
    "the workers ($WORKERS)" >&2
  # If it answers a process that still sends, that process may crash or hang.
  # While there is no scheduler, what the others send waits in their queues.
  sleep "${WAIT:-5}"
fi
exec python "$@"
