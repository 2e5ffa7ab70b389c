#!/bin/sh
# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds and tests the files of a release; `make release` runs it.
#
#   tools/release.sh
#
# It builds the sdist and, from it, the wheel; checks the metadata of the wheel;
# installs the wheel into an environment with the packages of the lock; and there
# imports it and trains a round, outside of the checkout. Only then are the files
# moved to dist/. Nothing is published.
#
# The environment is kept for the next release; an interrupted installation
# starts over. The variable RELEASE_VENV names it, by default .venv-release.

set -eu

cd "$(dirname "$0")/.."
root="$PWD"
readonly root
readonly PYTHON="$root/.venv/bin/python"
# The files needed for the build; the sdist contains nothing else.
readonly SOURCES='tff_adaptive pyproject.toml setup.cfg setup.py README.md LICENSE'

staging="$(mktemp -d)"
readonly staging
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM

describe_commit() {
  commit="$(git rev-parse --short HEAD 2> /dev/null)" || commit='none'
  if [ -n "$(git status --porcelain 2> /dev/null)" ]; then
    commit="$commit, with uncommitted changes"
  fi
  echo "commit: $commit"
}

# Builds $staging/*.tar.gz and, only from it, $staging/*.whl. The dates in the
# wheel are those of the commit, so that a commit always gives the same file.
build() {
  epoch="$(git log -1 --format=%ct 2> /dev/null)" || epoch=''
  if [ -n "$epoch" ]; then
    export SOURCE_DATE_EPOCH="$epoch"
  fi
  mkdir "$staging/source"
  # shellcheck disable=SC2086  # Splits the list into words.
  cp -R $SOURCES "$staging/source"
  (cd "$staging/source" && "$PYTHON" -c \
    'from setuptools import build_meta; build_meta.build_sdist("..")') \
    > "$staging/log" 2>&1 || { cat "$staging/log" >&2; return 1; }
  "$PYTHON" -m pip wheel --quiet --no-deps --no-index --no-build-isolation \
    --disable-pip-version-check --wheel-dir "$staging" "$staging"/*.tar.gz
}

# Installs the wheel into an environment of the lock, and trains with it.
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
