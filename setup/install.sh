#!/bin/sh
# Find Python 3.11, or say how to get it; setup/install.py does the rest.
# make runs this: PYTHON=python3.11 sh setup/install.sh STAMP [PIP'S ARGUMENTS]
has() { command -v "$1" >/dev/null 2>&1; }
refuse() { echo "d2lps: $*"; exit 1; }

found=$("$PYTHON" -c 'import platform as p
print(p.python_version(), p.system(), p.machine())' 2>/dev/null)
case "$(uname -s) $found" in
  MINGW*|MSYS*|CYGWIN*|*Windows*)
    refuse 'there is no MXNet for Windows: install WSL 2 (wsl --install)' \
      'and run "make lab" in its Linux terminal.' ;;
  *" 3.11."*" Darwin arm64")
    refuse 'there is no MXNet for Apple silicon: use an x86-64 Python, with' \
      'CONDA_SUBDIR=osx-64 conda env create -f environment.yml' ;;
  *" 3.11."*rc[0-9]*) ;;  # pip takes it for less than 3.11
  *" 3.11."*)
    exec "$PYTHON" setup/install.py "$@" ;;
esac

again="make lab"
sudo=$([ "$(id -u)" = 0 ] || echo 'sudo ')
# Ubuntu 22.04 has a release candidate.
if apt-cache show python3.11-venv 2>/dev/null | grep '^Version:' | grep -vq rc
then how="${sudo}apt install python3.11-venv libgomp1 libquadmath0"
elif has dnf
then how="${sudo}dnf install python3.11 libgomp libquadmath"
elif has brew
then how='brew install python@3.11'
elif has conda
then
  how='conda create -n py311 -c conda-forge python=3.11'
  again='make lab PYTHON="$(conda run -n py311 which python)"'
else
  uv=uv
  has uv || uv='~/.local/bin/uv'
  how="$uv python install 3.11"
  has uv || how="curl -LsSf https://astral.sh/uv/install.sh | sh
    $how"
  again="make lab PYTHON=\"\$($uv python find --system 3.11)\""
fi
refuse "needs Python 3.11, and \"$PYTHON\" is not that${found:+ (but $found)}.
If it is elsewhere:
    make lab PYTHON=/path/to/python3.11
If there is none:
    $how
    $again"
