#!/bin/sh
# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Makes a virtual environment that holds exactly what a lock file names.
#
#   tools/make_venv.sh VENV LOCK
#
# The finished environment keeps a copy of its lock, written last: where it
# equals the lock there is nothing to do, and an interrupted installation or a
# changed lock starts over. The variable PYTHON names the Python to use; by
# default it is the first of python3.11, python3 and python that is a 3.11.

set -eu

readonly VENV="$1"
readonly LOCK="$2"
readonly STAMP="$VENV/installed.lock"
readonly WANTED='3.11'

fail() {
  echo "$1" >&2
  exit 1
}

version_of() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# Prints the Python to use; prints nothing where there is none.
find_python() {
  if [ -n "${PYTHON:-}" ]; then
    set -- "$PYTHON"
  else
    set -- "python$WANTED" python3 python
  fi
  for candidate in "$@"; do
    if [ "$(version_of "$candidate")" = "$WANTED" ]; then
      echo "$candidate"
      return
    fi
  done
}

# Prints what there is in place of the Python that is wanted.
describe_python() {
  found="$(version_of "${PYTHON:-python3}")" || found=''
  echo "${PYTHON:-python3} is ${found:-not a Python that runs}"
}

is_up_to_date() {
  cmp -s "$LOCK" "$STAMP" && "$VENV/bin/python" -c '' 2>/dev/null
}

# Prints the lock's entry, hashes included, of one package.
entry_of() {
  awk -v name="$1==" '
    /^[a-z]/ { wanted = (index($0, name) == 1) } wanted' "$LOCK"
}

pip_install() {
  "$VENV/bin/python" -m pip install -qq --no-deps --no-input \
    --progress-bar off --disable-pip-version-check \
    --root-user-action ignore "$@"
}

install() {
  # Some packages come as sources only. They are built with the locked build
  # tools, which go in first, not with those that the index has today.
  build_tools="$VENV/build-tools.lock"
  { entry_of setuptools && entry_of wheel; } > "$build_tools"
  if [ -s "$build_tools" ]; then
    pip_install --requirement "$build_tools" || return 1
  fi
  pip_install --no-build-isolation --use-pep517 --requirement "$LOCK"
}

# Two calls at once must not install into each other's environment. The lock is
# on the open requirements file, so that it leaves nothing behind.
exec 9< "$LOCK"
if command -v flock > /dev/null 2>&1; then
  flock 9
fi

if is_up_to_date; then
  exit 0
fi

python="$(find_python)"
if [ -z "$python" ]; then
  fail "Python $WANTED is needed to make $VENV, but $(describe_python): install\
 it (Debian, Ubuntu: apt-get install python$WANTED python$WANTED-venv), or name\
 it with make PYTHON=/path/to/python$WANTED."
fi
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
  fail "The Python $WANTED at $(command -v "$python") has no venv module:\
 install it (Debian, Ubuntu: apt-get install python$WANTED-venv)."
fi

echo "Making $VENV from $LOCK (about two minutes, once) ..."
# What is on the caller's PYTHONPATH must not pass for installed.
unset PYTHONPATH
"$python" -m venv --clear "$VENV"
install || fail "Installing $LOCK into $VENV failed for the reason above; the\
 next make venv starts over."
cp "$LOCK" "$STAMP.part"
mv "$STAMP.part" "$STAMP"
