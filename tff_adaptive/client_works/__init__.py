# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Local training: one loop for any optimizer and loss term."""

from tff_adaptive.client_works.client_work import (
    build_local_training_client_work,
)
from tff_adaptive.client_works.local_training import GradientOptions
from tff_adaptive.client_works.loss_terms import build_fedprox
from tff_adaptive.client_works.loss_terms import build_keras_representation
from tff_adaptive.client_works.loss_terms import build_moon
from tff_adaptive.client_works.loss_terms import LossTerm
from tff_adaptive.client_works.loss_terms import PreviousModelLossTerm
from tff_adaptive.client_works.totals import Rejection
