#!/bin/sh
# Start setup/install.py with any Python from 3.8, or by uv; make runs this.
unset PYTHONPATH PYTHONHOME PYTHONSAFEPATH  # of another Python
cd "$(dirname "$0")/.." || exit
for python in python3 python py python3.14 python3.13 python3.12 python3.11; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null
  then exec "$python" setup/install.py "$@"
  fi
done
for uv in uv "$HOME/.local/bin/uv"; do  # where its installer puts it
  if "$uv" --version >/dev/null 2>&1
  then exec "$uv" run --no-project --python '>=3.11' setup/install.py "$@"
  fi
done
echo 'd2lps: there is no Python here. Install one, from 3.11 if you can:
    Debian, Ubuntu: sudo apt install python3-venv libgomp1 libquadmath0
    Fedora:         sudo dnf install python3 libgomp libquadmath
    Mac:            brew install python'
exit 1
