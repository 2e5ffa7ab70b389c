# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the clients of a round: good data, and data that users bring."""

import collections
from collections.abc import Callable, Mapping, Sequence
import random as random_lib
from typing import Any, NamedTuple

from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import testing
from tff_adaptive import data

_Features = dict[str, Any]

_MAX_EXAMPLES = 20
_IDS = ('a', 'client_1', 'b c', '', 'größe', '客户', 'a/b', '0')
_SPEC = collections.OrderedDict(
    (name, tf.TensorSpec(spec.shape[1:], spec.dtype))
    for name, spec in testing.INPUT_SPEC.items()
)


class ClientSet(NamedTuple):
  """The clients of a round, before anything of the library has seen them.

  Attributes:
    form: How they are given, one of `FORMS`.
    features: Of every client in its order: its features by name.
    defects: Of every client: what is the matter with it, '' if nothing is.
    ids: The ids of the clients.
    sampled: The ids of the cohort.
    plan: The arguments of a `BatchPlan`.
    step_limits: Those of the cohort.
  """

  form: str
  features: list[Any]
  defects: list[str]
  ids: list[Any]
  sampled: list[Any]
  plan: Mapping[str, Any]
  step_limits: Mapping[Any, int]


def _with(
    name: str, change: Callable[[Any], Any]
) -> Callable[[_Features], Any]:
  return lambda features: {**features, name: change(features[name])}


def _put(value: float) -> Callable[[Any], Any]:
  """Puts a value into the last element."""

  def put(array):
    array = array.copy()
    array.flat[-1:] = value
    return array

  return put


def _cast(dtype: Any) -> Callable[[Any], Any]:
  return lambda array: np.abs(array).astype(dtype)


def _strided(array: np.ndarray) -> np.ndarray:
  """Returns the same values with others between them."""
  return np.repeat(array, 2, axis=0)[::2]


def _read_only(array: np.ndarray) -> np.ndarray:
  array = array.copy()
  array.setflags(write=False)
  return array


# Changes that leave a client valid.
HARMLESS: Mapping[str, Callable[[_Features], Any]] = {
    '': lambda features: features,
    'strided': _with('x', _strided),
    'transposed': _with('x', lambda x: np.asfortranarray(x)),
    'reversed': _with('y', lambda y: y[::-1]),
    'read-only': _with('x', _read_only),
    'other order': lambda features: dict(reversed(features.items())),
}
# Changes that reject a client, or are an error.
HARMFUL: Mapping[str, Callable[[_Features], Any]] = {
    'NaN': _with('x', _put(np.nan)),
    'infinite': _with('x', _put(-np.inf)),
    'large': _with('x', _put(3e38)),
    'label too large': _with('y', _put(testing.NUM_CLASSES)),
    'label far too large': _with('y', _put(2**31 - 1)),
    'negative label': _with('y', _put(-1)),
    'int64 labels': _with('y', _cast(np.int64)),
    'uint8 labels': _with('y', _cast(np.uint8)),
    'float labels': _with('y', _cast(np.float32)),
    'bool labels': _with('y', _cast(bool)),
    'text labels': _with('y', _cast(str)),
    'labels of rank 2': _with('y', lambda y: y[:, np.newaxis]),
    'scalar labels': _with('y', lambda y: np.int32(0)),
    'float64': _with('x', _cast(np.float64)),
    'float16': _with('x', _cast(np.float16)),
    'integers': _with('x', _cast(np.int32)),
    'complex': _with('x', _cast(np.complex64)),
    'objects': _with('x', lambda x: x.astype(object)),
    'texts': _with('x', _cast(str)),
    'nothing': _with('x', lambda x: None),
    'vectors': _with('x', lambda x: x[:, 0]),
    'rank 3': _with('x', lambda x: x[..., np.newaxis]),
    'few columns': _with('x', lambda x: x[:, :4]),
    'no columns': _with('x', lambda x: x[:, :0]),
    'no labels': lambda features: {'x': features['x']},
    'no features': lambda features: {},
    'more features': lambda features: {**features, 'z': features['y']},
    'other names': lambda features: {'a': features['x'], 'b': features['y']},
    'names that are numbers': lambda features: dict(
        enumerate(features.values())
    ),
    'nested': lambda features: {'x': dict(features), 'y': features['y']},
    'pair': lambda features: tuple(features.values()),
    'no mapping': lambda features: 3,
    'one label more': _with('y', lambda y: np.append(y, y[:1] * 0)),
    'one row less': _with('x', lambda x: x[1:]),
}


def _features(num_examples: int, seed: int) -> _Features:
  generator = np.random.default_rng(seed)
  shape = [num_examples, testing.NUM_FEATURES]
  return {
      'x': generator.normal(size=shape).astype(np.float32),
      'y': (
          generator.integers(testing.NUM_CLASSES, size=num_examples).astype(
              np.int32
          )
      ),
  }


_GOOD_PLANS: Mapping[str, tuple[Any, ...]] = {
    'batch_size': (1, 2, 3, 4, 8, 64, 10**9),
    'num_epochs': (1, 1, 2, 3),
    'max_examples': (None, None, 1, 5, 10**9),
    'shuffle': (True, False),
    'drop_remainder': (False, False, True),
}
_BAD_PLANS = (
    {'batch_size': 0},
    {'batch_size': 2.5},
    {'batch_size': None},
    {'batch_size': 4, 'num_epochs': -1},
    {'batch_size': 4, 'max_examples': 0},
    {'batch_size': 4, 'shuffle': 'yes'},
)


def _draw_defect(random: random_lib.Random, share: float) -> str:
  return random.choice(tuple(HARMFUL if random.random() < share else HARMLESS))


def _draw_plan(random: random_lib.Random) -> Mapping[str, Any]:
  if random.random() < 0.05:
    return random.choice(_BAD_PLANS)
  return {name: random.choice(some) for name, some in _GOOD_PLANS.items()}


def _draw_sampled(random: random_lib.Random, ids: Sequence[str]) -> list[Any]:
  """Draws all or some clients, a few twice, and rarely an unknown one."""
  sampled: list[Any] = list(ids)
  if ids and random.random() < 0.5:
    sampled = random.choices(ids, k=random.randint(0, 5))
  if random.random() < 0.05:
    sampled.append(random.choice(('nobody', 3, None)))
  return sampled


@st.composite
def client_sets(draw: Any) -> ClientSet:
  """Draws up to 5 clients of up to 20 examples, and their form."""
  # Hypothesis' own draws come in groups that are nearly the same.
  random = draw(st.randoms(use_true_random=True))
  sizes = [
      random.choice((0, random.randint(0, _MAX_EXAMPLES)))
      if random.random() < 0.2
      else random.randint(1, _MAX_EXAMPLES)
      for _ in range(random.randint(0, 5))
  ]
  # Most sets have nothing that is an error, or one thing.
  share = random.choice((0.0, 0.2, 0.5))
  defects = [_draw_defect(random, share) for _ in sizes]
  alter = {**HARMLESS, **HARMFUL}
  ids = random.sample(_IDS, len(sizes))
  limits = {
      name: random.choice((0, 1, 2, 3, 3, -1))
      for name in ids
      if random.random() < 0.1
  }
  return ClientSet(
      form=random.choice(FORMS),
      features=[
          alter[defect](_features(size, seed))
          for seed, (size, defect) in enumerate(zip(sizes, defects))
      ],
      defects=defects,
      ids=ids,
      sampled=_draw_sampled(random, ids),
      plan=_draw_plan(random),
      step_limits=limits,
  )


def _packed(drawn: ClientSet) -> Any:
  clients = dict(zip(drawn.ids, drawn.features))
  return _cohort(drawn, data.PackedClientArrays.from_clients(clients))


def _lazy(drawn: ClientSet) -> Any:
  clients = dict(zip(drawn.ids, drawn.features))
  source = data.LazyClientArrays(
      drawn.ids, clients.__getitem__, _SPEC, cache_bytes=100
  )
  return _cohort(drawn, source)


def _cohort(drawn: ClientSet, source: Any) -> Any:
  plan = data.BatchPlan(**drawn.plan)
  return data.Cohort(
      source, drawn.sampled, 0, 1, plan, step_limits=drawn.step_limits
  )


def _batch_size(drawn: ClientSet) -> int:
  return max(int(drawn.plan['batch_size'] or 1), 1)


def _batches(drawn: ClientSet, convert: Callable[[Any], Any]) -> Any:
  """Returns lists of batches, without a plan's shuffling."""
  size = _batch_size(drawn)

  def cut(features):
    if not isinstance(features, dict):
      return features
    lengths = [
        len(value)
        for value in features.values()
        if isinstance(value, np.ndarray) and value.ndim
    ]
    return [
        {
            name: convert(
                value[i : i + size]
                if isinstance(value, np.ndarray) and value.ndim
                else value
            )
            for name, value in features.items()
        }
        for i in range(0, max(lengths, default=1), size)
    ]

  return list(map(cut, drawn.features))


def _arrays(drawn: ClientSet) -> Any:
  return _batches(drawn, lambda value: value)


def _lists(drawn: ClientSet) -> Any:
  return _batches(
      drawn, lambda v: v.tolist() if isinstance(v, np.ndarray) else v
  )


def _tensors(drawn: ClientSet) -> Any:
  return _batches(
      drawn,
      lambda v: tf.constant(v)
      if isinstance(v, np.ndarray) and v.dtype != object
      else v,
  )


def _datasets(drawn: ClientSet) -> Any:
  """Returns datasets, of what these take; the rest as it is."""

  def to_dataset(features):
    try:
      dataset = tf.data.Dataset.from_tensor_slices(features)
    except (TypeError, ValueError, tf.errors.OpError):
      return features
    return dataset.batch(_batch_size(drawn))

  return list(map(to_dataset, drawn.features))


_BUILDERS: Mapping[str, Callable[[ClientSet], Any]] = {
    'packed': _packed,
    'lazy': _lazy,
    'arrays': _arrays,
    'lists': _lists,
    'tensors': _tensors,
    'datasets': _datasets,
}
FORMS = tuple(_BUILDERS)


def build(drawn: ClientSet) -> Any:
  """Builds the clients of a process: a `Cohort` or a list."""
  return _BUILDERS[drawn.form](drawn)
