# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The data of a task: their source, and their form for models."""

import abc
import collections
from collections.abc import Callable, Mapping
import types
from typing import Any, Optional, Union

import attrs

from tasks.arguments import Argument
from tff_adaptive import _files
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays

# The values of a task's arguments as attributes.
Arguments = types.SimpleNamespace
DataDir = Optional[_files.PathLike]
Prepare = Callable[[feature_arrays.Examples], feature_arrays.Examples]


def spec(**features: Any) -> feature_arrays.ElementSpec:
  """Returns the spec of an example.

  Args:
    **features: The type and the shape of each feature of an example, such as
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
  """The published data of a task.

  Attributes:
    train: The clients to train on, or examples to split among clients.
    central_test: The test examples.
    test: The clients to evaluate on, or None (the default).
    validation: The validation examples, or None (the default).
  """

  train: Union[client_data.ClientArrays, feature_arrays.Examples]
  central_test: feature_arrays.Examples
  test: Optional[client_data.ClientArrays] = None
  validation: Optional[feature_arrays.Examples] = None


class Data(abc.ABC):
  """The data of a task; subclasses implement how they are read.

  Attributes:
    extra_arguments: The arguments that only `create_from_data` takes.
    reads_files: Whether the data are read from `--data_dir`.
    keeps_sizes: Whether the function of `build_prepare` returns one example for
      each example.
    in_memory: Whether to read all clients at once.
    cache_bytes: The size of the cache for clients that are read one by one.
  """

  extra_arguments: tuple[str, ...] = ()
  reads_files = True
  keeps_sizes = True
  in_memory = False
  cache_bytes = client_data.DEFAULT_CACHE_BYTES

  @property
  def arguments(self) -> tuple[Argument, ...]:
    """The arguments of a task that concern the data; none by default."""
    return ()

  def complete(self, args: Arguments) -> Arguments:
    """Returns the arguments, completed by values from `extra_arguments`."""
    return args

  def check_files(self, data_dir: _files.PathLike) -> None:
    """Checks the files before a run imports TensorFlow; reads no examples.

    Args:
      data_dir: The folder of the data sets.

    Raises:
      FileNotFoundError: If a file is missing.
      ValueError: If a file is of another form.
    """

  @abc.abstractmethod
  def load(self, args: Arguments, data_dir: DataDir, seed: int) -> Splits:
    """Reads the published data."""

  @abc.abstractmethod
  def published_spec(self) -> feature_arrays.ElementSpec:
    """Returns the spec of a published example."""

  @abc.abstractmethod
  def element_spec(self, args: Arguments) -> feature_arrays.ElementSpec:
    """Returns the spec of an example in the model's form."""

  def client_spec(self, args: Arguments) -> feature_arrays.ElementSpec:
    """Returns the spec of a client's example, before augmentation."""
    return self.element_spec(args)

  @abc.abstractmethod
  def num_classes(self, args: Arguments) -> Optional[int]:
    """Returns the number of classes; None without classes."""

  def has_validation(self, given: Mapping[str, Any]) -> bool:
    """Returns whether the published data include validation examples.

    These then choose rounds and methods, unless a flag says otherwise.

    Args:
      given: The values given for the arguments of the task, by name.
    """
    del given  # Unused.
    return False

  def build_prepare(
      self, args: Arguments, train: Any, data_dir: DataDir
  ) -> Prepare:
    """Returns the function from published examples to clients' examples.

    Args:
      args: The arguments of the task.
      train: The published training data.
      data_dir: The folder of the data sets; None for the user's own data.
    """
    del args, train, data_dir  # Unused.
    return lambda examples: examples

  def augmentation(self, args: Arguments) -> Optional[batching.Augmentation]:
    """Returns the augmentation of clients' training examples, if any."""
    del args  # Unused.
    return None

  def check(self, splits: Splits) -> None:
    """Raises a ValueError if the user's own data do not fit the task."""

  @property
  def synthetic_files(self) -> Mapping[str, Callable[..., None]]:
    """The functions that write synthetic data, by the path of the file."""
    return {}
