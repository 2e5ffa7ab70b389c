# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The data of a task: where they are read, and what models see of them."""

import abc
import collections
from collections.abc import Callable, Mapping
import os
import types
from typing import Any, Optional, Union

import attrs

from tasks.arguments import Argument
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import transforms

# The values of a task's arguments, as attributes.
Arguments = types.SimpleNamespace
DataDir = Optional[Union[str, os.PathLike]]
Prepare = Callable[[feature_arrays.Examples], feature_arrays.Examples]

DOWNLOAD = Argument(
    'download',
    False,
    'Whether the data are downloaded if --data_dir has none.',
    is_hparam=False,
)


def spec(**features: Any) -> feature_arrays.ElementSpec:
  """Returns the specification of an example.

  Args:
    **features: The type of each feature and the shape of one, such as
      `x=('float32', [28, 28, 1])`.

  Returns:
    Names and `tf.TensorSpec`s, in this order.

  Example:

    >>> spec(y=('int32', []))['y'].dtype
    tf.int32
  """
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  return collections.OrderedDict(
      (name, tf.TensorSpec(shape, dtype))
      for name, (dtype, shape) in features.items()
  )


@attrs.frozen
class Splits:
  """Data as they are published.

  Attributes:
    train: The clients to train on, or examples that are to be split among
      clients.
    central_test: The examples to test on.
    test: Clients to evaluate on, or None (the default).
    validation: Examples to validate on, or None (the default).
  """

  train: Union[client_data.ClientArrays, feature_arrays.Examples]
  central_test: feature_arrays.Examples
  test: Optional[client_data.ClientArrays] = None
  validation: Optional[feature_arrays.Examples] = None


class Data(abc.ABC):
  """Where a task's examples come from; subclasses say how they are read.

  Attributes:
    extra_arguments: Those that only callers of `create_from_data` give.
    reads_files: Whether the data are read from `--data_dir`.
    keeps_sizes: Whether what `build_prepare` returns makes one example of one.
    in_memory: Whether all clients are read at once.
    cache_bytes: How much memory clients take that are read one by one.
  """

  extra_arguments: tuple[str, ...] = ()
  reads_files = True
  keeps_sizes = True
  in_memory = False
  cache_bytes = client_data.DEFAULT_CACHE_BYTES

  @property
  def arguments(self) -> tuple[Argument, ...]:
    """The arguments of a task that are about the data; none by default."""
    return ()

  def complete(self, args: Arguments) -> Arguments:
    """Returns the arguments with what follows from `extra_arguments`."""
    return args

  @abc.abstractmethod
  def load(self, args: Arguments, data_dir: DataDir, seed: int) -> Splits:
    """Reads the published data."""

  @abc.abstractmethod
  def published_spec(self) -> feature_arrays.ElementSpec:
    """Returns the specification of an example as it is published."""

  @abc.abstractmethod
  def element_spec(self, args: Arguments) -> feature_arrays.ElementSpec:
    """Returns the specification of an example as a model takes it."""

  def client_spec(self, args: Arguments) -> feature_arrays.ElementSpec:
    """Returns that of a client's example, before an augmentation."""
    return self.element_spec(args)

  @abc.abstractmethod
  def num_classes(self, args: Arguments) -> Optional[int]:
    """Returns the number of classes; None where there are none."""

  def build_prepare(
      self, args: Arguments, train: Any, data_dir: DataDir
  ) -> Prepare:
    """Returns the function from published examples to those of a client.

    Args:
      args: The arguments of the task.
      train: The published training data.
      data_dir: The folder of the data sets; None for a caller's own data.
    """
    del args, train, data_dir  # Unused.
    return lambda examples: examples

  def augmentation(self, args: Arguments) -> Optional[batching.Augmentation]:
    """Returns what happens to a client's examples in training, if anything."""
    del args  # Unused.
    return None

  def read_clients(
      self, clients: client_data.ClientArrays
  ) -> client_data.ClientArrays:
    """Returns a caller's own clients, in memory if they must be there."""
    if self.in_memory and self.keeps_sizes:
      return transforms.materialize(clients)
    return clients

  def check(self, splits: Splits) -> None:
    """Raises a ValueError if a caller's own data are none of this task."""

  @property
  def synthetic_files(self) -> Mapping[str, Callable[..., None]]:
    """The functions that write made-up data, by the place of the file."""
    return {}
