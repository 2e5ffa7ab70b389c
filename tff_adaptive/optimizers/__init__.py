# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers for clients and servers, one file per rule.

Each is a `tff.learning.optimizers.Optimizer`; if it needs the loss or a second
gradient evaluation, an `ExtraArgsOptimizer`; if part of its state crosses
rounds, a `FederatedOptimizer`; if clients report to it or it sets what they
send, a `ServerOptimizer`. Learning rates that depend on the round are in
`schedules`.

A builder raises a `TypeError` if an argument is not a number, or not an integer
where one is expected, and a `ValueError` if it is out of its range. `next`
raises a `ValueError` if the caller does not pass what the rule needs: the loss,
an evaluation of the batch, or reports. The annotations give the ranges, see
`tff_adaptive.ranges`, and the docstrings other errors.
"""

from tff_adaptive.optimizers import schedules
from tff_adaptive.optimizers.client.adaalter import build_adaalter
from tff_adaptive.optimizers.client.adagrad_norm import build_adagrad_norm
from tff_adaptive.optimizers.client.adaptive import build_adagrad
from tff_adaptive.optimizers.client.adaptive import build_adam
from tff_adaptive.optimizers.client.adaptive import build_yogi
from tff_adaptive.optimizers.client.adgd import build_adgd
from tff_adaptive.optimizers.client.armijo import build_armijo
from tff_adaptive.optimizers.client.cocob import build_cocob
from tff_adaptive.optimizers.client.d_adaptation import build_d_adaptation_adam
from tff_adaptive.optimizers.client.d_adaptation import build_d_adaptation_sgd
from tff_adaptive.optimizers.client.d_adaptation import build_prodigy
from tff_adaptive.optimizers.client.delta_sgd import build_delta_sgd
from tff_adaptive.optimizers.client.dog import build_dog
from tff_adaptive.optimizers.client.dog import build_dowg
from tff_adaptive.optimizers.client.fafed import build_fafed
from tff_adaptive.optimizers.client.fedadamw import build_fedadamw
from tff_adaptive.optimizers.client.fedcada import build_fedcada_adam
from tff_adaptive.optimizers.client.fedcm import build_fedcm
from tff_adaptive.optimizers.client.fedcm import build_mofedsam
from tff_adaptive.optimizers.client.feddyn import build_feddyn
from tff_adaptive.optimizers.client.fedhyper import build_fedhyper_client_local
from tff_adaptive.optimizers.client.fedlion import build_fedlion
from tff_adaptive.optimizers.client.fedmuon import build_fedmuon
from tff_adaptive.optimizers.client.fedmuon_lmo import build_fedmuon_lmo
from tff_adaptive.optimizers.client.fedpac_soap import build_fedpac_soap
from tff_adaptive.optimizers.client.fedpac_sophia import build_fedpac_sophia
from tff_adaptive.optimizers.client.fedsam import build_fedsam
from tff_adaptive.optimizers.client.fedspeed import build_fedspeed
from tff_adaptive.optimizers.client.mechanic import build_mechanic_adam
from tff_adaptive.optimizers.client.mechanic import build_mechanic_sgd
from tff_adaptive.optimizers.client.mime import build_mime
from tff_adaptive.optimizers.client.mime import build_mimelite
from tff_adaptive.optimizers.client.momo import build_momo
from tff_adaptive.optimizers.client.momo import build_momo_adam
from tff_adaptive.optimizers.client.scaffold import build_scaffold_sgd
from tff_adaptive.optimizers.client.schedule_free import (
    build_schedule_free_adamw,
)
from tff_adaptive.optimizers.client.schedule_free import build_schedule_free_sgd
from tff_adaptive.optimizers.client.schedule_free_plus import (
    build_schedule_free_plus,
)
from tff_adaptive.optimizers.client.schedule_free_polyak import (
    build_schedule_free_polyak_adam,
)
from tff_adaptive.optimizers.client.schedule_free_polyak import (
    build_schedule_free_polyak_sgd,
)
from tff_adaptive.optimizers.client.sgd import build_sgd
from tff_adaptive.optimizers.client.sm3 import build_sm3
from tff_adaptive.optimizers.client.sps import build_sps
from tff_adaptive.optimizers.client.sps import build_sps_max
from tff_adaptive.optimizers.client.sps import build_sps_smooth
from tff_adaptive.optimizers.client_reports import ClientRoundEnd
from tff_adaptive.optimizers.client_reports import LocalStep
from tff_adaptive.optimizers.client_reports import Report
from tff_adaptive.optimizers.federated_optimizer import FederatedOptimizer
from tff_adaptive.optimizers.federated_optimizer import Survey
from tff_adaptive.optimizers.optimizer import ExtraArgsOptimizer
from tff_adaptive.optimizers.server.fed_schedule_free import (
    build_fed_schedule_free,
)
from tff_adaptive.optimizers.server.fedadamom import build_fedadamom
from tff_adaptive.optimizers.server.fedavg import build_fedavg
from tff_adaptive.optimizers.server.fedavg import build_fedavgm
from tff_adaptive.optimizers.server.fedexp import build_fedexp
from tff_adaptive.optimizers.server.fedexprox import build_fedexprox_grads
from tff_adaptive.optimizers.server.fedexprox import build_fedexprox_stops
from tff_adaptive.optimizers.server.fedhyper import build_fedhyper_global
from tff_adaptive.optimizers.server.fedhyper import build_fedhyper_server_local
from tff_adaptive.optimizers.server.fedli import build_frank_wolfe
from tff_adaptive.optimizers.server.fedli import build_line_search_step
from tff_adaptive.optimizers.server.fednova import build_fednova
from tff_adaptive.optimizers.server.fedopt import build_fedadagrad
from tff_adaptive.optimizers.server.fedopt import build_fedadam
from tff_adaptive.optimizers.server.fedopt import build_fedams
from tff_adaptive.optimizers.server.fedopt import build_fedyogi
from tff_adaptive.optimizers.server.gpa import build_gpa
from tff_adaptive.optimizers.server_optimizer import ServerOptimizer
