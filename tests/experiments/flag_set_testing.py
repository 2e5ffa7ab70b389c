# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws sets of flags of a training run, valid and invalid ones.

What there is to draw comes from the registry and from the flags themselves: a
new row or flag is drawn without being named here.
"""

import random as random_lib
from typing import Any

from absl import flags
from hypothesis import strategies as st

from experiments import hparams
from experiments import registry

# So that a run takes seconds; what is drawn comes later and counts instead.
SMALL = (
    '--digits_model=logistic',
    '--digits_num_clients=6',
    '--clients_per_round=3',
    '--client_batch_size=16',
    '--client_epochs=1',
    '--max_examples=32',
    '--total_rounds=1',
    '--rounds_per_evaluation=1',
)

# Flags that are the same in every run, or that a test cannot satisfy.
_NOT_DRAWN = (
    registry.TASK,
    registry.RUNTIME,
    'data_dir',
    'output_dir',
    'digits_model',
    'wandb',
    'mlflow',
)
# Flags whose large values only ask for much work.
_MUCH_WORK = (
    'total_rounds',
    'client_batch_size',  # Of pooled examples: many epochs in one batch.
    'client_epochs',
    'personalization_epochs',
)

_NUMBERS = ('0', '-1', 'nan', 'inf', '-inf', '1e300', '1e38', '1e10', '1e-45')
_LARGE_INTEGERS = ('2147483648', '9223372036854775808', '1' + 30 * '0')
_NO_NUMBERS = ('one',)
_NO_INTEGERS = ('1.5', '-2147483648')
_WORDS = ('', ' ', 'none', '../x', 'a//b', '-1', 'nan', 'größe', 'x' * 300)

# Valid values of flags whose types do not say enough.
_MEANT = {
    'client_schedule_table': ('0:1,1:0.5', '0:1', '0:1,10:0'),
    'clients_per_round': ('1', '2', '3', '4'),
    'devices': ('auto', 'CPU', 'CPU:0'),
    'digits_num_clients': ('4', '8', '20'),
    'evaluations': ('central', 'per_client', 'personalized,central'),
    'experiment_name': ('run', 'a/b', 'größe'),
    'final_evaluations': ('central', 'per_client,personalized'),
    'line_search_step_scale': ('max', 'unit', '0.5'),
    'monitored_metric': ('evaluation/loss', 'clients/loss'),
    'server_schedule_table': ('0:1,1:0.5', '0:2'),
}
_SELDOM_MEANT = {
    'client_schedule_table': ('0:nan', '0', '0:1,0:2', '1:1', '0:1e300'),
    'devices': ('GPU', 'CPU:7', 'TPU'),
    'dp_payload_clip_norms': ('control:0.1', 'a:b', 'a', 'control:nan', ','),
    'evaluations': ('all', ',', 'central,central'),
    'initial_weights': ('.', '/dev/null', 'nowhere.npz'),
    'line_search_step_scale': ('-1', 'nan', 'inf', 'most'),
    'monitored_metric': ('loss', 'device', 'evaluation/'),
    'server_schedule_table': ('0:-1', '0:inf', ':', '1:1,0:1', '-1:1'),
}
# Flags that mean something together only.
_BUNDLES: tuple[dict[str, str], ...] = (
    {
        'client_weighting': 'uniform',
        'dp_noise_multiplier': '0.5',
        'dp_clip_norm': '1',
    },
    {
        'client_weighting': 'uniform',
        'dp_adaptive_clip_count_stddev': '1',
        'dp_adaptive_clip_quantile': '0.5',
        'dp_noise_multiplier': '0.5',
        'sampling': 'poisson',
    },
    {
        'algorithm': 'scaffold',
        'dp_clip_norm': '1',
        'dp_noise_multiplier': '0.1',
        'dp_payload_clip_norms': 'control:0.1',
    },
    {'drop_clients': '0.5', 'straggler_fraction': '0.5'},
    {'drop_clients': '1'},
    {
        'algorithm': 'fed_opt',
        'client_optimizer': 'sgd',
        'client_learning_rate': '1e18',
    },
    {'client_learning_rate': '1e10', 'total_rounds': '2'},
    {'server_learning_rate': '1e18', 'total_rounds': '2'},
    {'max_client_update_norm': '1e-3'},
    {'evaluations': 'per_client', 'heldout_fraction': '0.2'},
    {'final_evaluations': 'personalized', 'heldout_clients': '2'},
    {'evaluations': 'personalized', 'evaluation_clients': '2'},
    {'evaluation_data': 'validation', 'evaluation_examples': '10'},
    {'evaluation_data': 'validation', 'validation_fraction': '0.2'},
    {'evaluation_data': 'train', 'evaluation_examples': '10'},
    {'evaluation_data': 'test_clients', 'heldout_fraction': '0.2'},
    {'keep_best': 'true', 'early_stopping_patience': '1', 'total_rounds': '2'},
    {'weights_average_rounds': '2', 'total_rounds': '2'},
    {'weights_average_decay': '0.5', 'keep_best': 'true'},
    {'algorithm': 'fed_opt', 'digits_model': 'cnn', 'loss_term': 'moon'},
    {'loss_term': 'fedprox', 'client_schedule': 'step_decay'},
)


def _define_flags() -> dict[str, flags.Flag]:
  values = flags.FlagValues()
  hparams.define(values)
  return {name: values[name] for name in values}


_FLAGS = _define_flags()
_USES = hparams.flags_of_rows()
_KINDS = tuple(kind for kind in registry.ROWS if kind not in _NOT_DRAWN)
# Those that belong to no row.
_GENERAL = tuple(
    name for name in _FLAGS if name not in {*registry.ROWS, *_USES, *_NOT_DRAWN}
)
# Alone, most of them are errors.
_OF_OTHERS = ('dp_', 'evaluation_', 'final_', 'monitored_', 'personalization_')
_ALONE = tuple(
    name
    for name in _GENERAL
    if not name.startswith(_OF_OTHERS) and name != 'use_synthetic_data'
)
_ALGORITHMS = registry.ROWS[registry.ALGORITHM]


def _meant(name: str) -> tuple[Any, ...]:
  """Returns values of a flag that are usually valid."""
  parser = _FLAGS[name].parser
  if name in _MEANT:
    return _MEANT[name]
  if isinstance(parser, flags.EnumParser):
    return tuple(parser.enum_values)
  if isinstance(parser, flags.BooleanParser):
    return 'true', 'false'
  if isinstance(parser, flags.IntegerParser):
    return 1, 2, 3
  if isinstance(parser, flags.FloatParser):
    defaults = [argument.default for _, _, argument in _USES.get(name, ())]
    if not defaults or defaults[0] in (None, 0.0, float('inf')):
      return 0.1, 0.5, 1.0
    return 0.5 * defaults[0], 0.9 * defaults[0], defaults[0]
  return _WORDS


def _seldom_meant(name: str) -> tuple[str, ...]:
  """Returns values of a flag at the ends of its range, or beyond."""
  parser = _FLAGS[name].parser
  if name in _SELDOM_MEANT:
    return _SELDOM_MEANT[name]
  if isinstance(parser, flags.IntegerParser):
    large = () if name in _MUCH_WORK else _LARGE_INTEGERS
    return (*_NO_NUMBERS, *_NO_INTEGERS, '0', '-1', *large)
  if isinstance(parser, flags.FloatParser):
    return (*_NUMBERS, *_NUMBERS, *_NO_NUMBERS)
  return _WORDS


def _choose_rows(
    random: random_lib.Random, chosen: dict[str, str]
) -> dict[str, str]:
  """Chooses an algorithm, and rows of what it leaves free, if not chosen."""
  names = tuple(_ALGORITHMS)
  name = chosen.get(registry.ALGORITHM, random.choice(names))
  algorithm = _ALGORITHMS[name]
  parts = {part.kind for part in algorithm.parts}
  found = {registry.ALGORITHM: name}
  for kind in _KINDS:
    if kind in chosen or kind not in algorithm.supplied or kind in parts:
      continue
    if random.random() < 0.4:
      rows = [row for row in registry.ROWS[kind] if row not in registry.FIXED]
      found[kind] = random.choice(rows)
  return found


def _own_arguments(chosen: dict[str, str]) -> dict[str, registry.Argument]:
  """Returns the arguments of the chosen rows, by flag."""
  kinds = {**hparams.DEFAULT_ROWS}
  for part in _ALGORITHMS[chosen[registry.ALGORITHM]].parts:
    kinds[part.kind] = part.name
  kinds.update((kind, chosen[kind]) for kind in _KINDS if kind in chosen)
  rows = [registry.ROWS[kind][name] for kind, name in kinds.items()]
  return {
      row.flag_name(argument): argument
      for row in rows
      for argument in row.arguments
      if row.flag_name(argument) not in _NOT_DRAWN
  }


def _draw_flags(random: random_lib.Random, min_extremes: int) -> dict[str, Any]:
  """Draws the values of flags by name."""
  values: dict[str, Any] = {}
  if random.random() < 0.5:
    values.update(random.choice(_BUNDLES))
  values.update(_choose_rows(random, values))
  own = _own_arguments(values)
  some = random.sample(tuple(own), min(len(own), random.randint(0, 3)))
  some += [name for name in own if own[name].is_required]
  some += random.sample(_ALONE, random.choice((0, 1, 1, 2)))
  for name in some:
    values.setdefault(name, random.choice(_meant(name)))
  others = (*_GENERAL, *_KINDS, random.choice(tuple(_USES)))
  for _ in range(max(min_extremes, random.randint(0, 1))):
    name = random.choice(random.choice((tuple(own), others)))
    if name not in _NOT_DRAWN:
      values[name] = random.choice(_seldom_meant(name))
  return values


@st.composite
def flag_sets(draw: Any, min_extremes: int = 0) -> tuple[str, ...]:
  """Draws flags of a run, to follow `SMALL`.

  At least `min_extremes` of them have an extreme value.
  """
  # Hypothesis' own draws come in groups that are nearly the same.
  random = draw(st.randoms(use_true_random=True))
  values = _draw_flags(random, min_extremes)
  return tuple(f'--{name}={value}' for name, value in values.items())
