#!/bin/sh
# Find a Python, get one, or say how to; setup/install.py does the rest.
# make runs this: PYTHON=python3.11 sh setup/install.sh STAMP [PIP'S ARGUMENTS]
# and, where any Python from 3.11 will do: PYTHON= sh setup/install.sh light
# or book
unset PYTHONPATH PYTHONHOME PYTHONSAFEPATH  # of another Python
has() { command -v "$1" >/dev/null 2>&1; }
refuse() { echo "d2lps: $*"; exit 1; }

light= again='make lab' wanted='Python 3.11' versions=3.11 apple= seen=
case "$1 $(uname -s) $(uname -m)" in
  light*|book*)
    light=$1 again='make lab-light' wanted='Python 3.11 or later'
    [ "$1" = light ] || again='make book'
    versions='3.11 3.12 3.13 3.14' ;;
  *" MINGW"*|*" MSYS"*|*" CYGWIN"*|*" Windows"*)
    refuse 'there is no MXNet for Windows. Three ways:
    make lab-light: chapters 3, 5, 6, 7, 14, 18 and 19, which need no MXNet
    docker compose up
    wsl --install, and "make lab" in its Linux terminal' ;;
  *" Darwin arm64")
    apple=yes ;;
esac

# Will this Python do? (A release candidate, as Ubuntu 22.04 has one, is less
# than 3.11 to pip.)
fits() {
  found=$("$1" -c 'import platform as p
print(p.python_version(), p.system(), p.machine())' 2>/dev/null)
  [ ! "$found" ] || seen=$found
  case "$found" in
    *rc[0-9]*|*" CYGWIN"*|*" MSYS"*) false ;;  # no wheels for those
    3.11.*" Darwin arm64") [ "$light" ] || { apple=yes; false; } ;;
    3.11.*) ;;
    3.1[2-9].*) [ "$light" ] ;;
    *) false ;;
  esac
}
try() { ! fits "$1" || exec "$@"; }

named=$PYTHON mine=.python311/bin/python
case "$PYTHON" in
  python3.11|'')  # what the Makefile says
    named=
    for one in $versions; do try "python$one" setup/install.py "$@"; done
    if [ "$light" ]; then
      for one in python3 python py; do try $one setup/install.py "$@"; done
    fi
    try $mine setup/install.py "$@" ;;
  *)
    try "$PYTHON" setup/install.py "$@" ;;
esac

# There is none, but perhaps a program that gets one.
uv=uv; has uv || uv=$HOME/.local/bin/uv  # where its installer puts it
conda=
for one in micromamba mamba conda; do ! has $one || conda=$one; done
if [ "$named" ]; then :
elif has "$uv" && [ "$apple" != yes ]; then
  find() { "$uv" python find --system 3.11 2>/dev/null; }
  try "$(find)" setup/install.py "$@"
  echo "d2lps: no $wanted here, so uv gets one: $uv python install 3.11"
  "$uv" python install 3.11 || refuse 'uv did not get it. Is this machine' \
    'connected to the Internet?'
  try "$(find)" setup/install.py "$@"
elif [ "$conda" ]; then
  echo "d2lps: no $wanted here, so $conda puts one into .python311" \
    "${apple:+(for Intel Macs: there is no MXNet for Apple silicon)}"
  [ "$apple" != yes ] || export CONDA_SUBDIR=osx-64
  $conda create --yes --quiet --prefix .python311 --override-channels \
    --channel conda-forge python=3.11 || refuse "$conda did not get it. Is" \
    'this machine connected to the Internet?'
  try $mine setup/install.py "$@"
fi
[ "$apple" != yes ] || refuse 'there is no MXNet for Apple silicon. Three ways:
    make lab-light: chapters 3, 5, 6, 7, 11, 12, 14, 18 and 19, which need no MXNet
    docker compose up
    conda, from https://conda-forge.org/download: "make lab" finds it there'

# In a fresh image, apt knows nothing of what it could install.
lists() { [ "$(apt-cache madison python3 2>/dev/null)" ]; }
how=
for one in $versions; do
  if [ ! "$how" ] && apt-cache show python$one-venv 2>/dev/null |
     grep '^Version:' | grep -vq rc
  then
    how="$([ "$(id -u)" = 0 ] || echo 'sudo ')apt install python$one-venv"
    [ "$light" ] || how="$how libgomp1 libquadmath0"
  fi
done
if [ "$how" ]; then :
elif has apt-cache && ! lists; then
  how="$([ "$(id -u)" = 0 ] || echo 'sudo ')apt update"
elif has dnf; then
  how="$([ "$(id -u)" = 0 ] || echo 'sudo ')dnf install python3.11"
  [ "$light" ] || how="$how libgomp libquadmath"
elif has brew; then how='brew install python@3.11'
else how='curl -LsSf https://astral.sh/uv/install.sh | sh'
fi
later=
if [ ! "$light$named" ]; then
  [ "$seen" ] || fits python3
  case "$seen" in 3.1[2-9].*Linux*|3.1[2-9].*Darwin*) later=${seen%% *} ;; esac
fi
case "$later $how" in 3*curl*)
  refuse "needs Python 3.11, as there is no MXNet for a later one. Here is \
$later. Three ways:
    make lab-light: chapters 3, 5, 6, 7, 11, 12, 14, 18 and 19, which need no MXNet
    docker compose up
    $how
    and then make lab, for which uv gets a Python 3.11"
esac
what='none was found'
[ ! "$named" ] || what="\"$named\" is not that"
refuse "needs $wanted, and $what${seen:+ (but $seen)}.
If it is elsewhere:
    $again PYTHON=/path/to/python3.11
If there is none:
    $how
    $again"
