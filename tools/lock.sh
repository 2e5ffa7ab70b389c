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

# Writes a lock with the versions of requirements.txt.
#
#   compile_alike PYTHON NAME [option of uv ...]
compile_alike() {
  compile "$@" --constraints requirements.txt
}

# Writes the lock of an extra: the packages that requirements.txt does not have.
#
#   compile_extra PYTHON NAME [option of uv ...]
compile_extra() {
  compile_alike "$@"
  awk '
    FNR == NR { known[$1]; next }
    /^[a-z]/ { is_known = ($1 in known) }
    !is_known' requirements.txt "$2.txt" > .venv-lock/additions.txt
  cp .venv-lock/additions.txt "$2.txt"
}

# Writes a lock in which TensorFlow is its build for CPUs: the other one would look
# for CUDA, too, and can meet JAX's libraries.
#
#   compile_cuda PYTHON NAME [option of uv ...]
compile_cuda() {
  echo 'tensorflow; sys_platform == "none"' > .venv-lock/overrides.txt
  compile_alike "$@" --constraints requirements-jax.txt \
    --overrides .venv-lock/overrides.txt
}

# Runs one of the above for the oldest Python; others must have the same lock.
#
#   for_all_pythons FUNCTION NAME [option of uv ...]
for_all_pythons() {
  run="$1" lock="$2"
  shift 2
  "$run" 3.11 "$lock" "$@"
  for newer in 3.12 3.13; do
    cp "$lock.txt" .venv-lock/oldest.txt
    "$run" "$newer" "$lock"
    cmp -s "$lock.txt" .venv-lock/oldest.txt || {
      cp .venv-lock/oldest.txt "$lock.txt"
      echo "$lock.txt is not valid for Python $newer: restrict a version in\
 $lock.in." >&2
      exit 1
    }
  done
}

for_all_pythons compile requirements "$@"
for extra in jax pretrained ray trackers; do
  for_all_pythons compile_extra "requirements-$extra" "$@"
done
# Whole, for Bazel, which reads one lock.
for_all_pythons compile_alike requirements-test "$@"
# Whole, as it is in place of requirements.txt.
for_all_pythons compile_cuda requirements-cuda "$@"
compile 3.11 requirements-check "$@"
compile 3.11 requirements-coverage "$@"
compile 3.11 requirements-docs "$@"
echo 'Wrote requirements.txt and the requirements-*.txt.'
