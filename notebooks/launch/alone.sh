#!/usr/bin/env bash
# Starts by_hand.sh on one machine only, whose number is the argument. It waits
# for the other machine, in vain, and its last message is shown.
#
#   python -m d2lps cluster --num-servers 0 --bandwidth 125e6 launch/alone.sh 0
set -u
[ "$NODE" = "$1" ] || exit 0
cd "$(dirname "$0")"
SECONDS=0  # bash counts them
TIMEOUT=3 bash by_hand.sh 2>&1 | grep -E '^machine|Error: '
echo "machine $NODE ended after $SECONDS s"
