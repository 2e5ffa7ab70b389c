#!/bin/sh
# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the files of a release and tries them out; `make release` runs it.
#
#   tools/release.sh
#
# It builds the sdist and, from that, the wheel; checks what the wheel says of
# itself; installs it into an environment that holds what the lock names; there
# imports it and trains a round, away from the checkout. Only then do the files
# go to dist/. Nothing is published.
#
# The environment is kept for the next time; an interrupted installation starts
# over. The variable RELEASE_VENV names another one, .venv-release by default.

set -eu

cd "$(dirname "$0")/.."
root="$PWD"
readonly root
readonly PYTHON="$root/.venv/bin/python"
# What the build needs; the sdist holds no more.
readonly SOURCES='tff_adaptive pyproject.toml setup.cfg setup.py README.md LICENSE'

staging="$(mktemp -d)"
readonly staging
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM

describe_commit() {
  commit="$(git rev-parse --short HEAD 2> /dev/null)" || commit='none'
  if [ -n "$(git status --porcelain 2> /dev/null)" ]; then
    commit="$commit, with changes that are not committed"
  fi
  echo "commit: $commit"
}

# Builds $staging/*.tar.gz and, from it alone, $staging/*.whl. The dates in the
# wheel are that of the commit, so that the same commit gives the same file.
build() {
  epoch="$(git log -1 --format=%ct 2> /dev/null)" || epoch=''
  if [ -n "$epoch" ]; then
    export SOURCE_DATE_EPOCH="$epoch"
  fi
  mkdir "$staging/source"
  # shellcheck disable=SC2086  # The words of the list are what is meant.
  cp -R $SOURCES "$staging/source"
  (cd "$staging/source" && "$PYTHON" -c \
    'from setuptools import build_meta; build_meta.build_sdist("..")') \
    > "$staging/log" 2>&1 || { cat "$staging/log" >&2; return 1; }
  "$PYTHON" -m pip wheel --quiet --no-deps --no-index --no-build-isolation \
    --disable-pip-version-check --wheel-dir "$staging" "$staging"/*.tar.gz
}

# Installs the wheel where the lock is, and trains with it from elsewhere.
try_out() {
  tools/make_venv.sh "$1" requirements.txt
  "$1/bin/python" -m pip install --quiet --no-deps --no-index \
    --force-reinstall --disable-pip-version-check --root-user-action ignore \
    "$staging"/*.whl
  venv="$(cd "$1" && pwd)"
  echo "environment: $venv"
  (cd "$staging" && "$venv/bin/python" -I "$root/tools/train_one_round.py")
}

describe_commit
build
"$PYTHON" tools/check_release.py "$staging"/*.whl
try_out "${RELEASE_VENV:-.venv-release}"

mkdir -p dist
for file in "$staging"/*.tar.gz "$staging"/*.whl; do
  name="dist/$(basename "$file")"
  mv "$file" "$name"
  sha256sum "$name"
done
