# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Downloads a data set to the place where the tasks look for it.

For example:

  python -m tasks.fetch shakespeare --data_dir=data

An interrupted download continues when the same command is run again. `--list`
lists the data sets.
"""

import argparse
from collections.abc import Sequence
import difflib
import os
import pathlib
import sys
from typing import NoReturn, Optional

from tasks import catalogue
from tasks import data_files
from tasks import downloads
from tasks import programs
from tasks import sources
from tff_adaptive import _error_texts
from tff_adaptive import _files

_EXIT_ENVIRONMENT = 1
_EXIT_USER = 2
_EXIT_INTERRUPTED = 130

_INTERRUPTED = 'Interrupted; run the same command again to continue.'


class _Parser(argparse.ArgumentParser):
  """A parser that prints each error as one sentence."""

  def error(self, message: str) -> NoReturn:
    stop = '' if message.endswith('?') else '.'
    self.exit(_EXIT_USER, f'error: {message}{stop}\n')


def _build_parser() -> argparse.ArgumentParser:
  parser = _Parser(
      prog=programs.to_command('tasks.fetch'),
      description=programs.localize(__doc__),
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('name', nargs='?', help='the data set, one of --list')
  parser.add_argument(
      '--data_dir',
      default='data',
      help='the folder of the data sets, created if missing; default: '
      '%(default)s',
  )
  parser.add_argument(
      '--list',
      action='store_true',
      help='only print a line for each data set: its name, its files, the '
      'size of the download, its source and its licence',
  )
  return parser


def describe(datasets: Sequence[sources.Dataset]) -> str:
  """Returns a line for each data set, for `--list`.

  Args:
    datasets: The data sets.

  Returns:
    Lines in aligned columns: name, files, size of the download, source and a
    note on the licence.

  Example:

    >>> print(describe([catalogue.DATASETS['shakespeare']]))
    shakespeare  tff/shakespeare.sqlite  1.3 MB  TensorFlow Federated, ...
  """
  rows = [
      (
          dataset.name,
          ', '.join(dataset.places),
          _size_text(dataset.size),
          dataset.source,
          f'licence: {dataset.licence}',
      )
      for dataset in datasets
  ]
  widths = [max(map(len, column)) for column in zip(*rows)]
  return '\n'.join(
      '  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
      for row in rows
  )


def fetch(dataset: sources.Dataset, data_dir: pathlib.Path) -> None:
  """Downloads the missing files of a data set.

  Args:
    dataset: The data set.
    data_dir: The folder of the data sets; it is created.

  Raises:
    DownloadError: If the download fails; says what may be done by hand.
    FolderInUseError: If another process is downloading the data set.
    KeyboardInterrupt: With a sentence on how to continue.
    WriteError: If a file cannot be written.

  Example:

    ```python
    fetch(catalogue.DATASETS['shakespeare'], pathlib.Path('data'))
    ```
  """
  print(f'{dataset.source} (licence: {dataset.licence})', flush=True)
  try:
    with _files.locked(data_dir / f'.fetch_{dataset.name}'):
      if dataset.tfds_name is not None:
        _prepare(dataset.tfds_name, dataset.tfds_url, data_dir)
      for file in dataset.files:
        _fetch_file(file, data_dir)
  except downloads.DownloadError as error:
    files = dataset.by_hand or ', '.join(dataset.places)
    raise downloads.DownloadError(
        f'{error}, or put {files} into {data_dir} by hand'
    ) from error


def _fetch_file(file: sources.RemoteFile, data_dir: pathlib.Path) -> None:
  """Downloads and unpacks a file, unless its results exist."""
  path = data_dir / file.path
  results = [data_dir / result for result in file.results]
  if all(result.exists() for result in results):
    for result in results:
      print(f'{result} exists already')
    return
  if not path.exists():
    print(f'{file.url} ({_size_text(file.size)})', flush=True)
    downloads.download(file.url, path, file.digest)
  if file.unpacked:
    downloads.unpack(path, results)
    if not file.is_kept:
      path.unlink()
  for result in results:
    print(f'{result} is complete')


def _prepare(name: str, url: str, data_dir: pathlib.Path) -> None:
  """Downloads and prepares a data set with tensorflow-datasets."""
  folder = data_dir / 'tfds' / name
  if data_files.prepared_version(data_dir, name) is not None:
    print(f'{folder} exists already')
    return
  # Without network, tensorflow-datasets retries for minutes.
  downloads.check_reachable(url)
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  try:
    # Imported here because it takes seconds and other data sets do not need it.
    import tensorflow_datasets as tfds  # pylint: disable=g-import-not-at-top

    tfds.builder(name, data_dir=folder.parent).download_and_prepare()
  except Exception as error:  # pylint: disable=broad-exception-caught
    # TensorFlow, requests and tensorflow-datasets have different errors.
    raise downloads.DownloadError(
        f'tensorflow-datasets could not prepare {folder} '
        f'({_error_texts.first_line(error)}); run the same command again'
    ) from error
  print(f'{folder} is complete')


def _size_text(size: Optional[int]) -> str:
  return 'unknown size' if size is None else f'{size / 1e6:.1f} MB'


def main(arguments: Sequence[str]) -> int:
  """Runs the command line.

  Args:
    arguments: The command-line arguments, without the program.

  Returns:
    The exit code: 0 on success, 1 if the download fails, 2 for a wrong command,
    130 after Ctrl-C; each failure prints one sentence.
  """
  parser = _build_parser()
  parsed = parser.parse_args(arguments)
  if parsed.list:
    print(describe(list(catalogue.DATASETS.values())))
    return 0
  if parsed.name is None:
    parser.error('name a data set, one of --list')
  datasets = catalogue.DATASETS
  name = parsed.name.lower().replace('-', '_')
  if name not in datasets:
    near = difflib.get_close_matches(name, datasets, n=1)
    hint = f'did you mean {near[0]}?' if near else 'see --list'
    parser.error(f'there is no data set {parsed.name!r}; {hint}')
  try:
    fetch(datasets[name], pathlib.Path(parsed.data_dir))
  except (
      downloads.DownloadError,
      _files.FolderInUseError,
      _files.WriteError,
  ) as error:
    return _fail(_EXIT_ENVIRONMENT, f'error: {error}.')
  except KeyboardInterrupt as interrupt:
    return _fail(_EXIT_INTERRUPTED, str(interrupt) or _INTERRUPTED)
  return 0


def _fail(code: int, sentence: str) -> int:
  print(sentence, file=sys.stderr)
  return code


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
