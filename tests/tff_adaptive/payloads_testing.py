# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rules whose clients send more than a change of the model."""

from tff_adaptive import optimizers

NUM_CLIENTS = 40

# Client rules and server rules, and the names of what clients send besides the
# change: of what is shared, and of reports.
RULES = {
    'scaffold_and_fedexp': (
        lambda: optimizers.build_scaffold_sgd(NUM_CLIENTS),
        optimizers.build_fedexp,
        ('control',),
        ('squared_norm',),
    ),
    'sgd': (optimizers.build_sgd, optimizers.build_fedavg, (), ()),
    'fedcada': (
        lambda: optimizers.build_fedcada_adam(time='global_step'),
        optimizers.build_fedavg,
        ('first_moment', 'second_moment', 'num_steps'),
        (),
    ),
    'fafed': (
        optimizers.build_fafed,
        optimizers.build_fedadam,
        ('momentum', 'second_moment'),
        (),
    ),
    'adaalter': (
        optimizers.build_adaalter,
        optimizers.build_fedavg,
        ('second_moment',),
        (),
    ),
    'scaffold': (
        lambda: optimizers.build_scaffold_sgd(NUM_CLIENTS),
        optimizers.build_fedavg,
        ('control',),
        (),
    ),
    'fedexp': (
        optimizers.build_delta_sgd,
        optimizers.build_fedexp,
        (),
        ('squared_norm',),
    ),
    'fedli_lu': (
        optimizers.build_sps,
        optimizers.build_frank_wolfe,
        (),
        ('mean_loss',),
    ),
    'feddyn': (
        lambda: optimizers.build_feddyn(NUM_CLIENTS),
        optimizers.build_fedavg,
        (),
        (),
    ),
    'fedcm': (
        optimizers.build_fedcm,
        optimizers.build_fedavg,
        ('global_direction',),
        (),
    ),
    'fedadamw': (
        optimizers.build_fedadamw,
        optimizers.build_fedavg,
        ('global_direction', 'num_steps', 'mean_second_moment'),
        (),
    ),
    'fedmuon': (
        optimizers.build_fedmuon,
        optimizers.build_fedavg,
        ('global_direction', 'num_steps', 'momentum'),
        (),
    ),
    'fedpac_soap': (
        optimizers.build_fedpac_soap,
        optimizers.build_fedavg,
        ('global_direction', 'num_steps', 'gram'),
        (),
    ),
    'fedpac_sophia': (
        optimizers.build_fedpac_sophia,
        optimizers.build_fedavg,
        ('global_direction', 'num_steps', 'mean_second_moment'),
        (),
    ),
    'fedlion': (
        optimizers.build_fedlion,
        optimizers.build_fedavg,
        ('momentum',),
        (),
    ),
    'fedmuon_lmo': (
        lambda: optimizers.build_fedmuon_lmo(NUM_CLIENTS),
        optimizers.build_fedavg,
        ('control',),
        (),
    ),
    'fedhyper_client_local': (
        optimizers.build_fedhyper_client_local,
        optimizers.build_fedhyper_global,
        ('mean_change',),
        (),
    ),
    'mimelite': (
        optimizers.build_mimelite,
        optimizers.build_fedavg,
        ('momentum',),
        (),
    ),
    'fedexprox_stops': (
        optimizers.build_sgd,
        optimizers.build_fedexprox_stops,
        (),
        ('squared_norm', 'final_loss'),
    ),
    'fednova': (
        optimizers.build_sgd,
        optimizers.build_fednova,
        (),
        ('normalizer',),
    ),
}
