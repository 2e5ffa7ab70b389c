# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the files of data sets, and reads small ones into memory."""

from collections.abc import Callable, Mapping
import pathlib
from typing import Any, Optional

import numpy as np

from tasks import programs
from tasks.arguments import Argument
from tff_adaptive import _error_texts
from tff_adaptive import _files
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import transforms

DEFAULT_MAX_BYTES = 1 << 30
MAX_BYTES_IN_MEMORY = Argument(
    'max_bytes_in_memory',
    DEFAULT_MAX_BYTES,
    'The maximum size of a split whose clients are held in memory, which makes '
    'rounds fastest; clients of larger splits are read when they are sampled.',
    minimum=0,
    is_hparam=False,
)


def how_to_fetch(dataset: str, data_dir: _files.PathLike) -> str:
  """Returns the command that downloads a data set, in backticks.

  Args:
    dataset: The name of the data set for `python -m tasks.fetch`.
    data_dir: The folder of the data sets.
  """
  arguments = [dataset, f'--data_dir={data_dir}']
  return f'`{programs.to_command("tasks.fetch", arguments)}`'


def find_data_file(
    data_dir: _files.PathLike, place: str, dataset: str
) -> pathlib.Path:
  """Returns the path of a data set's file, which must exist.

  Args:
    data_dir: The folder of the data sets.
    place: The file's path in that folder, such as 'tff/shakespeare.sqlite'.
    dataset: The name of the data set for `python -m tasks.fetch`.

  Returns:
    The path.

  Raises:
    FileNotFoundError: If the file does not exist; says where to put it and how
      to download it.

  Example:

    >>> find_data_file('data', 'tff/shakespeare.sqlite', 'shakespeare')
    PosixPath('data/tff/shakespeare.sqlite')
  """
  path = pathlib.Path(data_dir) / place
  if not path.exists():
    raise FileNotFoundError(
        f'{path.name} was not found: put it at {path}, or download it with '
        f'{how_to_fetch(dataset, data_dir)}.'
    )
  _files.tell_of_reading(path)
  return path


def prepared_version(
    data_dir: _files.PathLike, name: str
) -> Optional[pathlib.Path]:
  """Returns the newest version that tensorflow-datasets prepared, if any.

  Args:
    data_dir: The folder of the data sets; looks in `tfds/<name>`.
    name: The name of the data set in tensorflow-datasets.

  Returns:
    The folder of the version; None if none is complete.

  Example:

    >>> prepared_version('data', 'mnist')
    PosixPath('data/tfds/mnist/3.0.1')
  """
  # The file exists only when the version has been written completely.
  infos = pathlib.Path(data_dir).glob(f'tfds/{name}/[0-9]*/dataset_info.json')
  return max(
      (info.parent for info in infos),
      key=lambda path: [int(n) for n in path.name.split('.') if n.isdigit()],
      default=None,
  )


def read_prepared(
    version: pathlib.Path,
    to_examples: Callable[[Mapping[str, np.ndarray]], feature_arrays.Examples],
    how_to_mend: str,
) -> dict[str, feature_arrays.Examples]:
  """Reads a data set that tensorflow-datasets prepared.

  Args:
    version: The folder of a version.
    to_examples: Converts the features of a split.
    how_to_mend: The end of the message about a damaged folder: '... delete it
      and <how_to_mend>.'

  Returns:
    The examples of the splits 'train' and 'test'.

  Raises:
    ValueError: If the folder is damaged, or lacks a split or a feature.
  """
  # Imported here because it takes seconds, which other files do not need.
  import tensorflow_datasets as tfds  # pylint: disable=g-import-not-at-top

  def read(split: str) -> Any:
    return tfds.as_numpy(builder.as_dataset(split=split, batch_size=-1))

  for path in sorted(version.rglob('*')):
    _files.tell_of_reading(path)
  try:
    builder = tfds.builder_from_directory(version)
    return {part: to_examples(read(part)) for part in ('train', 'test')}
  except (MemoryError, PermissionError):
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    # TensorFlow, protobuf and tensorflow-datasets have different errors.
    raise ValueError(
        f'{version} could not be read as a prepared data set '
        f'({_error_texts.first_line(error)}); delete it and {how_to_mend}.'
    ) from error


def keep_if_small(
    source: client_data.ClientArrays, max_bytes: int = DEFAULT_MAX_BYTES
) -> client_data.ClientArrays:
  """Reads all clients into memory if they fit, for faster rounds.

  Args:
    source: The clients. Their numbers of examples must be known without reading
      them, as for files.
    max_bytes: The maximum size of their examples in memory; reading needs up to
      twice as much. 0 never reads them. Defaults to 1 GiB.

  Returns:
    The clients as shared arrays if they fit, else `source`; also `source` if
    examples have no fixed size, such as strings.

  Example:

    >>> clients = client_data.LazyClientArrays(
    ...     ['a'], lambda client_id: {'x': np.ones([2], np.float32)},
    ...     {'x': tf.TensorSpec([], tf.float32)}, client_sizes={'a': 2})
    >>> type(keep_if_small(clients)).__name__
    'PackedClientArrays'
    >>> type(keep_if_small(clients, max_bytes=0)).__name__
    'LazyClientArrays'
  """
  example_bytes = _example_bytes(source.element_spec)
  if example_bytes is None:
    return source
  if source.total_examples * example_bytes > max_bytes:
    return source
  return transforms.materialize(source)


def _example_bytes(spec: feature_arrays.ElementSpec) -> Optional[int]:
  """Returns the size of an example, None if it varies."""
  if any(
      feature.dtype.name == 'string' or not feature.shape.is_fully_defined()
      for feature in spec.values()
  ):
    return None
  return sum(
      feature.dtype.size * feature.shape.num_elements()
      for feature in spec.values()
  )
