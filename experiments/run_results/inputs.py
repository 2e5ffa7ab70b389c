# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records the files that determine a run besides its flags, in its folder.

These are the modules of a user's own task and rules, with all that they import,
and the data files. A run whose files have changed since is another run: it is
neither continued nor shown as finished.
"""

from collections.abc import Collection, Iterator
import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import site
import sys
import sysconfig
import time
from typing import Any, Optional

from tff_adaptive import _files

_FILE = 'inputs.json'
_ROOT = pathlib.Path(__file__).resolve().parents[2]
# This project is in environment.json, with its commit.
_OWN_FOLDERS = (
    'tff_adaptive',
    'tasks',
    'experiments',
    'tools',
    'tests',
    'benchmarks',
)
# Larger data files have changed if their times have.
_MAX_DIGEST_BYTES = 256 << 20
_IN_DATA_DIR = 'data_dir:'
_CODE_SUFFIXES = ('.py', '.pyc', '.so')

# Folders of trackers, and hidden ones of the user that have data.
_TRACKERS = ('mlruns', 'wandb')
_CACHES = ('.keras', '.cache/huggingface')


@dataclasses.dataclass
class Reads:
  """The files that a process has read.

  Attributes:
    paths: Their paths.
    began: When it began to be watched, in ns; files that were written later are
      no data.
  """

  paths: set[str] = dataclasses.field(default_factory=set)
  began: int = dataclasses.field(default_factory=time.time_ns)


# Those of the `watched` blocks, which may be nested.
_watching: list[Reads] = []
_hook_is_added = False


def _hear(event: str, arguments: tuple[Any, ...]):
  """Takes note of a file that is opened for reading; see `sys.addaudithook`."""
  if not _watching or event not in (
      'open',
      'sqlite3.connect',
      _files.READ_EVENT,
  ):
    return
  path = arguments[0]
  if not isinstance(path, (str, bytes, os.PathLike)):
    return  # An open file.
  if event == 'open':
    _, mode, flags = arguments
    is_written = flags & (os.O_WRONLY | os.O_RDWR)
    if is_written or (mode and set(mode) & set('wax+')):
      return
  for reads in _watching:
    reads.paths.add(os.fsdecode(path))


@contextlib.contextmanager
def watched() -> Iterator[Reads]:
  """Collects the files that the process reads within the block.

  Yields:
    The files, which are added until the block ends.
  """
  global _hook_is_added
  if not _hook_is_added:
    sys.addaudithook(_hear)  # It cannot be removed.
    _hook_is_added = True
  reads = Reads()
  _watching.append(reads)
  try:
    yield reads
  finally:
    _watching[:] = [other for other in _watching if other is not reads]


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
  """Leaves the files out that are read within the block."""
  kept = list(_watching)
  _watching.clear()
  try:
    yield
  finally:
    _watching.extend(kept)


@functools.cache
def _foreign_folders() -> tuple[str, ...]:
  """Returns the folders of Python, its packages and this project."""
  names = ('stdlib', 'platstdlib', 'purelib', 'platlib')
  folders = [sysconfig.get_path(name) for name in names]
  folders += [*site.getsitepackages(), site.getusersitepackages()]
  folders += [str(_ROOT / name) for name in _OWN_FOLDERS]
  folders += ['/proc', '/sys', '/dev', '/etc']
  # Links in /etc lead there, which an update of the system changes.
  folders += ['/usr/lib', '/usr/share/zoneinfo']
  return tuple(f'{os.path.realpath(folder)}{os.sep}' for folder in folders)


def _is_data(path: str, run: pathlib.Path, began: int) -> bool:
  """Returns whether a file that was read is one of the run's data."""
  full = pathlib.Path(os.path.realpath(path))
  outside = (*_foreign_folders(), f'{os.path.realpath(run)}{os.sep}')
  if str(full).startswith(outside) or full.suffix in _CODE_SUFFIXES:
    return False
  if set(full.parts) & set(_TRACKERS) or _is_setting(full):
    return False
  return full.is_file() and full.stat().st_mtime_ns <= began


def _is_setting(path: pathlib.Path) -> bool:
  """Returns whether a file is in a hidden place of the user, not in a cache."""
  home = pathlib.Path(os.path.realpath(pathlib.Path.home()))
  if not path.is_relative_to(home):
    return False
  relative = path.relative_to(home).as_posix()
  return relative.startswith('.') and not relative.startswith(_CACHES)


def _modules(named: Collection[str]) -> dict[str, str]:
  """Returns the files of all modules that are a user's own, by name.

  Args:
    named: Those that flags name, which may be in the folders of this project.
  """
  outside = _foreign_folders()
  found = {}
  for name, module in list(sys.modules.items()):
    path = getattr(module, '__file__', None)
    # AutoGraph writes its own modules to temporary files.
    if not name.startswith('__autograph') and isinstance(path, str):
      is_own = not os.path.realpath(path).startswith(outside)
      if (is_own or name in named) and os.path.isfile(path):
        found[name] = path
  return found


def _to_key(path: str, data_dir: Optional[str]) -> str:
  """Returns how a file is recorded: relative to --data_dir, or to here."""
  full = os.path.abspath(path)
  for prefix, folder in ((_IN_DATA_DIR, data_dir), ('', os.getcwd())):
    if folder is not None:
      relative = os.path.relpath(full, os.path.abspath(folder))
      if not relative.startswith(os.pardir):
        return f'{prefix}{relative}'
  return full


def _to_path(key: str, data_dir: Optional[str]) -> Optional[pathlib.Path]:
  """Returns the file of a key; None if its folder is not known."""
  if not key.startswith(_IN_DATA_DIR):
    return pathlib.Path(key)
  if data_dir is None:
    return None
  return pathlib.Path(data_dir, key.removeprefix(_IN_DATA_DIR))


def _describe(path: pathlib.Path) -> dict[str, Any]:
  """Returns size and time of a file, and its digest unless it is large."""
  status = path.stat()
  found: dict[str, Any] = {
      'size': status.st_size,
      'time_ns': status.st_mtime_ns,
  }
  if status.st_size <= _MAX_DIGEST_BYTES:
    found['sha256'] = _digest(path, _version(status))
  return found


def _version(status: os.stat_result) -> tuple[int, ...]:
  """Returns numbers of which one changes if a file is written to."""
  return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@functools.cache
def _digest(path: pathlib.Path, version: tuple[int, ...]) -> str:
  """Returns the digest of a file, which is read once for each version."""
  del version  # It is part of the key.
  digest = hashlib.sha256()
  with open(path, 'rb') as file:
    while chunk := file.read(1 << 20):
      digest.update(chunk)
  return digest.hexdigest()


def _is_same(path: pathlib.Path, recorded: Any) -> bool:
  """Returns whether a file is as it was recorded."""
  status = path.stat()
  if status.st_size != recorded['size']:
    return False
  if 'sha256' not in recorded:
    return status.st_mtime_ns == recorded['time_ns']
  return _digest(path, _version(status)) == recorded['sha256']


def record(
    run: pathlib.Path,
    reads: Reads,
    data_dir: Optional[str],
    *,
    own: Collection[str],
):
  """Adds files to the record of a run.

  Args:
    run: The folder of the run, which must exist.
    reads: The files that it has read; those that are no data are skipped.
    data_dir: The folder of the data sets, or None. Files in it are recorded
      relative to it, as it may be moved.
    own: The modules of the task and rules that are a user's own; they are
      recorded with all that is loaded and is not of Python or this project.

  Raises:
    OSError: If a file cannot be read or written.
  """
  found = _read(run)
  modules = _modules(own) if own else {}
  # A copy, because other threads may still read.
  read = sorted(reads.paths.copy())
  data = [path for path in read if _is_data(path, run, reads.began)]
  for kind, paths in (('modules', sorted(modules.values())), ('data', data)):
    files = found.setdefault(kind, {})
    for path in paths:
      key = _to_key(path, data_dir if kind == 'data' else None)
      if key not in files:
        files[key] = _describe(pathlib.Path(path))
  text = json.dumps(found, indent=2, sort_keys=True) + '\n'
  if any(found.values()) and text != _read_text(run):
    _files.write(run / _FILE, text)


def _read_text(run: pathlib.Path) -> str:
  try:
    return (run / _FILE).read_text(encoding='utf-8')
  except OSError:
    return ''


def _read(run: pathlib.Path) -> dict[str, dict[str, Any]]:
  """Returns the record; empty for older runs, or if it is damaged."""
  try:
    found = json.loads(_read_text(run) or '{}')
    for files in found.values():
      for recorded in files.values():
        recorded['size'], recorded['time_ns']  # pylint: disable=pointless-statement
    return found
  except (AttributeError, KeyError, TypeError, ValueError):
    return {}


def describe_change(
    run: pathlib.Path,
    data_dir: Optional[str],
    cure: str = 'choose another --experiment_name, or delete that run',
) -> Optional[str]:
  """Returns a sentence on the first file that has changed, if any.

  Data files that are not there cannot be compared; those that replace them are
  named by the code or by --data_dir.

  Args:
    run: The folder of the run.
    data_dir: The folder of the data sets, or None.
    cure: The end of the sentence, what to do.

  Returns:
    For example 'the module rules.py has changed since ...'; None if nothing
    has, or nothing is recorded.
  """
  with unwatched():  # What is compared here is not read.
    change = _find_change(run, data_dir)
  if change is None:
    return None
  return f'{change} since the run in {run} began; {cure}'


def describe_replacement(
    run: pathlib.Path, reads: Reads, data_dir: Optional[str]
) -> Optional[str]:
  """Returns a sentence if no data file of a run is read any more, but others.

  These may be a form of the data set that is looked for first, and may have
  other clients.

  Args:
    run: The folder of the run.
    reads: The files that were read now.
    data_dir: The folder of the data sets, or None.
  """
  read = [
      _to_key(path, data_dir)
      for path in reads.paths.copy()
      if _is_data(path, run, reads.began)
  ]
  before, now = (
      {
          key.removeprefix(_IN_DATA_DIR)
          for key in keys
          if key.startswith(_IN_DATA_DIR)
      }
      for keys in (_read(run).get('data', {}), read)
  )
  if not before or not now or before & now:
    return None
  return (
      f'the run in {run} began with {min(before)} of --data_dir, but '
      f'{min(now)} is read now; move it away, or choose another '
      '--experiment_name'
  )


def _find_change(run: pathlib.Path, data_dir: Optional[str]) -> Optional[str]:
  for kind, files in _read(run).items():
    for key, recorded in files.items():
      path = _to_path(key, data_dir)
      if kind == 'modules':  # The run may have begun in another folder.
        places = (pathlib.Path(folder, key) for folder in ('', *sys.path))
        path = next((place for place in places if place.is_file()), path)
      if path is not None and path.is_file():
        if not _is_same(path, recorded):
          what = 'module' if kind == 'modules' else 'data file'
          return f'the {what} {path} has changed'
      elif path is not None and kind == 'modules':
        return f'the module {path} has gone'
  return None
