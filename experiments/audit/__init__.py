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
"""The central claims of the papers as checks, one file a paper.

A check measures with the library's own rules and processes, or reads finished
runs of published cells, and returns a `Verdict`. TensorFlow is imported with
the `laboratory`, not before.
"""

from experiments.audit import baselines
from experiments.audit import delta_sgd
from experiments.audit import fedcada
from experiments.audit import fedli
from experiments.audit import fedopt

CLAIMS = {
    name: claim
    for paper in (
        delta_sgd.PAPER,
        fedopt.PAPER,
        fedcada.PAPER,
        fedli.PAPER,
        *baselines.PAPERS,
    )
    for name, claim in paper.claims.items()
}
