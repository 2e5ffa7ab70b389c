# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of the papers' central claims, one file per paper.

A check either takes measurements with the library's rules and processes, or
reads finished runs of published cells, and returns a `Verdict`. Only the
`laboratory` imports TensorFlow.
"""

from tools.audit import baselines
from tools.audit import delta_sgd
from tools.audit import fedcada
from tools.audit import fedli
from tools.audit import fedopt

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
