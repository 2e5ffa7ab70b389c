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

# Makes requirements.txt, requirements-check.txt and requirements-docs.txt, with
# versions and hashes, from the .in files and the overrides. Versions that a
# lock already has are kept where they still fit; `tools/lock.sh --upgrade`
# takes the newest.
#
# The resolver is uv, because pip has no way to override a package's own pins.

set -eu

readonly UV='uv==0.13.8'
readonly PYTHON="${PYTHON:-python3.11}"

echo 'Making .venv-lock, the environment of the resolver ...'
"$PYTHON" -m venv --clear .venv-lock
.venv-lock/bin/python -m pip install -qq --disable-pip-version-check \
  --root-user-action ignore "$UV"

# No address and no path of this machine may get into the locks.
compile() {
  .venv-lock/bin/uv pip compile --quiet --no-config \
    --python .venv-lock/bin/python --python-version 3.11 \
    --python-platform x86_64-manylinux_2_31 --generate-hashes \
    --no-annotate --no-emit-index-url --no-emit-find-links \
    --custom-compile-command 'make lock' "$@"
}

compile "$@" --override requirements-overrides.txt \
  --output-file requirements.txt requirements.in
compile "$@" --output-file requirements-check.txt requirements-check.in
compile "$@" --output-file requirements-docs.txt requirements-docs.in
echo 'Wrote requirements.txt, requirements-check.txt and requirements-docs.txt.'
