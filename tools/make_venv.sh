#!/bin/sh
# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0

# Creates a virtual environment with exactly the packages of a lock file, and adds
# those of further locks.
#
#   tools/make_venv.sh VENV LOCK [LOCK ...]
#
# The finished environment keeps copies of its locks, each written last. If a copy
# equals the lock, there is nothing to do; an interrupted installation, a changed
# first lock or another Python version starts over. The variable PYTHON names the
# Python to use; by default it is the newest that the lock supports among
# python3.13, python3.12 etc., python3 and python, and those of pyenv.

set -eu

readonly VENV="$1"
readonly LOCK="$2"
shift 2
readonly STAMP="$VENV/installed.lock"
readonly WANTED='3.13 3.12 3.11'
# Debian and Ubuntu have it.
readonly BEST='3.12'
root="$(cd "$(dirname "$0")/.." && pwd)"
readonly root

fail() {
  echo "$1" >&2
  exit 1
}

version_of() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# Prints the Python to use, or nothing if there is none.
find_python() {
  if [ -n "${PYTHON:-}" ]; then
    set -- "$PYTHON"
  else
    # shellcheck disable=SC2046,SC2086  # Splits into one word per version.
    set -- $(printf 'python%s ' $WANTED) python3 python \
      "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/*/bin/python
  fi
  for wanted in $WANTED; do
    for candidate in "$@"; do
      version="$(version_of "$candidate")" || continue
      if [ "$version" = "$wanted" ]; then
        echo "$candidate"
        return
      fi
    done
  done
}

# Prints the supported versions: "3.12, 3.13 or 3.11".
list_wanted() {
  echo "$WANTED" | sed 's/ \([^ ]*\)$/ or \1/; s/ \([0-9]\)/, \1/'
}

# Prints the version of the Python that was found.
describe_python() {
  found="$(version_of "${PYTHON:-python3}")" || found=''
  echo "${PYTHON:-python3} is ${found:-not a Python that runs}"
}

is_up_to_date() {
  cmp -s "$LOCK" "$STAMP" && version="$(version_of "$VENV/bin/python")" || return
  [ -z "${PYTHON:-}" ] || [ "$(version_of "$PYTHON")" = "$version" ]
}

# Prints the lock's entry, hashes included, of one package.
entry_of() {
  awk -v name="$1==" '
    /^[a-z]/ { wanted = (index($0, name) == 1) } wanted' "$LOCK"
}

# Installs the packages of a lock, and prints a line for each.
#
#   pip_install LOCK [option of pip ...]
pip_install() {
  lock="$1" total="$(awk '/^[a-z].*==/ { n++ } END { print n + 0 }' "$1")"
  shift
  : > "$VENV/pip.failed"
  {
    "$VENV/bin/python" -m pip install --no-deps --no-input \
      --progress-bar off --disable-pip-version-check \
      --root-user-action ignore "$@" --requirement "$lock" ||
      echo "$lock" > "$VENV/pip.failed"
  } | {
    count=0
    while read -r verb package _; do
      case "$verb" in
        Collecting | Processing) # From an index, or from a folder.
          count=$((count + 1))
          echo "  $count of $total: ${package##*/}"
          ;;
        Installing) echo '  All are here; unpacking them ...' ;;
      esac
    done
  }
  [ ! -s "$VENV/pip.failed" ]
}

# Installs a lock, with the build tools that the environment has.
install_lock() {
  # TFF 0.87 requires a Python below 3.12 but runs on later ones, see
  # tff_adaptive/_stack.py.
  pip_install "$1" --no-build-isolation --use-pep517 --ignore-requires-python
}

install() {
  # Some packages have only sources. They are built with the locked build tools,
  # which are installed first, not with the newest ones on the index.
  build_tools="$VENV/build-tools.lock"
  { entry_of setuptools && entry_of wheel; } > "$build_tools"
  if [ -s "$build_tools" ]; then
    pip_install "$build_tools" || return 1
  fi
  install_lock "$LOCK"
}

# Adds the packages of a lock to the environment, unless it has them.
add() {
  stamp="$VENV/${1##*/}"
  cmp -s "$1" "$stamp" && return
  echo "Adding $1 to $VENV ..."
  install_lock "$1" || fail "Installing $1 into $VENV failed, see above; the\
 same command tries again."
  cp "$1" "$stamp.part"
  mv "$stamp.part" "$stamp"
}

# Makes the checkout, and TFF without it, importable from anywhere.
link_checkout() {
  "$VENV/bin/python" - "$root" << 'END'
import os, sys, sysconfig
root, site = sys.argv[1], sysconfig.get_path('purelib')
with open(os.path.join(root, 'tff_adaptive', '_import_hook.pth')) as hook:
  lines = os.path.relpath(root, site) + '\n' + hook.read()
with open(os.path.join(site, 'tff_adaptive.pth'), 'w') as file:
  file.write(lines)
script = os.path.join(os.path.dirname(sys.executable), 'tff-adaptive')
with open(script, 'w') as file:
  file.write(f'#!{sys.executable}\nfrom experiments.__main__ import main\nmain()\n')
os.chmod(script, 0o755)
END
}

make_environment() {
  python="$(find_python)"
  if [ -z "$python" ]; then
    fail "Python $(list_wanted) is needed to make $VENV, but\
 $(describe_python): install it (Debian, Ubuntu: apt-get install\
 python$BEST python$BEST-venv), or name it with make\
 PYTHON=/path/to/python$BEST."
  fi
  if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
    version="$(version_of "$python")"
    fail "The Python $version at $(command -v "$python") has no venv module:\
 install it (Debian, Ubuntu: apt-get install python$version-venv)."
  fi
  echo "Creating $VENV from $LOCK with Python $(version_of "$python") (about two\
 minutes, once) ..."
  # Packages on the caller's PYTHONPATH must not count as installed.
  unset PYTHONPATH
  "$python" -m venv --clear "$VENV"
  install || fail "Installing $LOCK into $VENV failed, see above; the next make\
 venv starts over."
  cp "$LOCK" "$STAMP.part"
  mv "$STAMP.part" "$STAMP"
  echo "$VENV is ready."
}

# Prevents two calls from installing into the same environment. The lock is on
# the open requirements file, so that it leaves no file behind.
exec 9< "$LOCK"
if command -v flock > /dev/null 2>&1; then
  flock 9
fi

if ! is_up_to_date; then
  # Making it anew would take it from the checkout whose it is.
  if [ -L "$VENV" ]; then
    fail "$VENV is a link to an environment that $LOCK did not make: remove the\
 link, or run make venv in the checkout that it belongs to."
  fi
  make_environment
fi
# A linked environment belongs to another checkout.
for extra in "$@"; do
  [ -L "$VENV" ] || add "$extra"
done
case "$LOCK" in
  *requirements.txt | *requirements-cuda.txt) [ -L "$VENV" ] || link_checkout ;;
esac
