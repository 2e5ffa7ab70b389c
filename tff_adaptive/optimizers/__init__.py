# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers for clients and servers, one file per rule.

Each is a `tff.learning.optimizers.Optimizer`; if it needs the loss or a second
gradient evaluation, an `ExtraArgsOptimizer`; if part of its state crosses
rounds, a `FederatedOptimizer`. Learning rates that depend on the round are in
`schedules`.
"""

from tff_adaptive.optimizers import schedules
from tff_adaptive.optimizers.adaalter import build_adaalter
from tff_adaptive.optimizers.adagrad import build_adagrad
from tff_adaptive.optimizers.adagrad import build_fedadagrad
from tff_adaptive.optimizers.adagrad_norm import build_adagrad_norm
from tff_adaptive.optimizers.adam import build_adam
from tff_adaptive.optimizers.adam import build_fedadam
from tff_adaptive.optimizers.adam import build_fedams
from tff_adaptive.optimizers.armijo import build_armijo
from tff_adaptive.optimizers.d_adaptation import build_d_adaptation_adam
from tff_adaptive.optimizers.d_adaptation import build_d_adaptation_sgd
from tff_adaptive.optimizers.d_adaptation import build_prodigy
from tff_adaptive.optimizers.delta_sgd import build_delta_sgd
from tff_adaptive.optimizers.dog import build_dog
from tff_adaptive.optimizers.dog import build_dowg
from tff_adaptive.optimizers.fafed import build_fafed
from tff_adaptive.optimizers.fedadamw import build_fedadamw
from tff_adaptive.optimizers.fedcada import build_fedcada_adam
from tff_adaptive.optimizers.fedcm import build_fedcm
from tff_adaptive.optimizers.fedcm import build_mofedsam
from tff_adaptive.optimizers.feddyn import build_feddyn
from tff_adaptive.optimizers.federated_optimizer import FederatedOptimizer
from tff_adaptive.optimizers.fedhyper import build_fedhyper_client_local
from tff_adaptive.optimizers.fedhyper import build_fedhyper_global
from tff_adaptive.optimizers.fedhyper import build_fedhyper_server_local
from tff_adaptive.optimizers.fedmuon import build_fedmuon
from tff_adaptive.optimizers.fedsam import build_fedsam
from tff_adaptive.optimizers.fedspeed import build_fedspeed
from tff_adaptive.optimizers.mime import build_mime
from tff_adaptive.optimizers.mime import build_mimelite
from tff_adaptive.optimizers.momo import build_momo
from tff_adaptive.optimizers.momo import build_momo_adam
from tff_adaptive.optimizers.optimizer import ExtraArgsOptimizer
from tff_adaptive.optimizers.scaffold import build_scaffold_sgd
from tff_adaptive.optimizers.schedule_free import build_schedule_free_adamw
from tff_adaptive.optimizers.schedule_free import build_schedule_free_sgd
from tff_adaptive.optimizers.sgd import build_fedavg
from tff_adaptive.optimizers.sgd import build_fedavgm
from tff_adaptive.optimizers.sgd import build_sgd
from tff_adaptive.optimizers.sm3 import build_sm3
from tff_adaptive.optimizers.sps import build_sps
from tff_adaptive.optimizers.sps import build_sps_max
from tff_adaptive.optimizers.sps import build_sps_smooth
from tff_adaptive.optimizers.yogi import build_fedyogi
from tff_adaptive.optimizers.yogi import build_yogi
