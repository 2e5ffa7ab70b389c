#!/bin/sh
# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the locks, with versions and hashes, from the .in files and tools/uv.toml.
# Keeps the versions that a lock already has if they still satisfy the .in files;
# `tools/lock.sh --upgrade` takes the newest.
#
# The resolver is uv, because pip cannot replace a package's own pins.

set -eu

readonly UV='uv==0.13.8'
readonly PYTHON="${PYTHON:-python3}"

echo 'Creating .venv-lock, the environment of the resolver ...'
"$PYTHON" -m venv --clear .venv-lock
.venv-lock/bin/python -m pip install -qq --disable-pip-version-check \
  --root-user-action ignore "$UV"

# Writes NAME.txt from NAME.in for a Python.
#
#   compile PYTHON NAME [option of uv ...]
#
# A lock must not contain index addresses or local paths.
compile() {
  python="$1" name="$2"
  shift 2
  .venv-lock/bin/uv pip compile --quiet --config-file tools/uv.toml \
    --python-version "$python" --python-platform x86_64-manylinux_2_31 \
    --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
    --custom-compile-command 'make lock' --output-file "$name.txt" "$@" \
    "$name.in"
}

# The main lock serves several Pythons: it is compiled for the oldest, and must
# give the same versions for the others.
compile 3.11 requirements "$@"
for python in 3.12 3.13; do
  cp requirements.txt .venv-lock/oldest.txt
  compile "$python" requirements
  cmp -s requirements.txt .venv-lock/oldest.txt || {
    cp .venv-lock/oldest.txt requirements.txt
    echo "requirements.txt is not valid for Python $python: restrict a version\
 in requirements.in." >&2
    exit 1
  }
done
compile 3.11 requirements-check "$@"
compile 3.11 requirements-coverage "$@"
compile 3.11 requirements-docs "$@"
echo 'Wrote requirements.txt and requirements-{check,coverage,docs}.txt.'
