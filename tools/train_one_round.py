# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a round with the installed tff_adaptive.

`python -I tools/train_one_round.py` uses nothing else from the checkout, and
exits with an error if it would import the library from the checkout.
"""

import collections
import os
import pathlib
import sys
import warnings

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')

# pylint: disable=g-import-not-at-top
import tff_adaptive  # noqa: E402  # First, to keep TensorFlow quiet.

# isort: split

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tff_adaptive import algorithms  # noqa: E402
from tff_adaptive import models  # noqa: E402
from tff_adaptive import optimizers  # noqa: E402
from tff_adaptive import runtime  # noqa: E402

# pylint: enable=g-import-not-at-top

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_NUM_CLIENTS = 2


def _build_model() -> models.KerasFunctionalModel:
  """Returns a linear regression with one feature."""
  return models.from_keras(
      keras.Sequential([keras.Input([1]), keras.layers.Dense(1)]),
      keras.losses.MeanSquaredError(),
      input_spec=collections.OrderedDict(
          x=tf.TensorSpec([None, 1], tf.float32),
          y=tf.TensorSpec([None, 1], tf.float32),
      ),
  )


def _build_client(slope: float) -> tf.data.Dataset:
  """Returns the batches of a client."""
  x = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, np.newaxis]
  examples = collections.OrderedDict(x=x, y=np.float32(slope) * x)
  return tf.data.Dataset.from_tensor_slices(examples).batch(4)


def main():
  """Trains a round and prints the version of the library.

  Raises:
    SystemExit: If the library is imported from the checkout, or the round did
      not change the weights.
  """
  package = pathlib.Path(tff_adaptive.__file__).resolve().parent
  if package == _ROOT / 'tff_adaptive':
    sys.exit(f'tff_adaptive is imported from the checkout: {package}.')
  print(f'imported: tff_adaptive {tff_adaptive.__version__} from {package}')
  process = algorithms.build_fed_opt(
      _build_model(), optimizers.build_delta_sgd()
  )
  clients = [_build_client(1.0 + number) for number in range(_NUM_CLIENTS)]
  runtime.CompiledContext(strict=True).install()
  output = process.next(process.initialize(), clients)
  counts = output.metrics['client_work']['clients']
  moved = float(output.metrics['finalizer']['update_norm'])
  if not moved > 0.0:
    sys.exit(f'The round moved the weights by {moved}: {counts}.')
  print(f'trained: a round of Delta-SGD on {_NUM_CLIENTS} clients')


if __name__ == '__main__':
  main()
