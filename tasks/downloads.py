# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Downloads and unpacks files, and resumes after an interruption.

This module does not import TensorFlow. Neither pooch nor the loaders of TFF and
tensorflow-datasets can replace it: none of them resumes a partial file, and
Stack Overflow has gigabytes.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
import contextlib
import hashlib
import http.client
import lzma
import os
import pathlib
import re
import sys
import tarfile
from typing import Any, IO, Optional
import urllib.error
import urllib.request
import zlib

import tqdm

from tff_adaptive import _files

_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 60.0
_AGAIN = 'run the same command again to continue'
_ANEW = 'run the same command again to restart the download'
# The file has no bytes after the requested position.
_RANGE_NOT_SATISFIABLE = 416


class DownloadError(Exception):
  """A file cannot be downloaded; the text is a sentence without a full stop."""


def download(
    url: str, path: pathlib.Path, digest: Optional[str] = None
) -> None:
  """Downloads a file, resuming a partial download.

  The bytes go to `<path>.part`, which is kept after an error and which the next
  call completes, if the server can send the rest of a file. A complete file is
  verified by its digest and renamed.

  Args:
    url: The URL.
    path: The file to create; its folder is created, too.
    digest: 'sha256:' or 'md5:' and hexadecimal digits. None (the default) for
      the MD5 in the response headers of Google Cloud Storage, if any.

  Raises:
    DownloadError: If the server cannot be reached, refuses or closes the
      connection early; or if the digest is wrong, in which case the file is
      deleted.
    KeyboardInterrupt: With a sentence on how to continue.
    WriteError: If the file cannot be written, for example because the disk is
      full.

  Example:
    ```python
    download('https://example.org/a.csv', pathlib.Path('data/a.csv'))
    ```
  """
  part = path.with_name(f'{path.name}.part')
  try:
    with _files.write_errors_of(part):
      path.parent.mkdir(parents=True, exist_ok=True)
      said = _fetch(url, part)
      _check_digest(url, part, digest or said)
      os.replace(part, path)
  except KeyboardInterrupt as interrupt:
    raise KeyboardInterrupt(
        f'Interrupted; the partial download is {part}; {_AGAIN}.'
    ) from interrupt


def check_reachable(url: str) -> None:
  """Raises a DownloadError unless a URL's server responds, with any status."""
  request = urllib.request.Request(url, method='HEAD')
  with _connection_errors_of(url):
    try:
      urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS).close()
    except urllib.error.HTTPError:
      pass  # The URL is wrong, but the server responds.


def unpack(archive: pathlib.Path, targets: Sequence[pathlib.Path]) -> None:
  """Unpacks an archive; files appear only when they are complete.

  Args:
    archive: A file that ends in `.lzma`, which becomes the only target, or a
      tar archive, whose members have the names of the targets.
    targets: The files to create; their folders are created, too.

  Raises:
    DownloadError: If the archive is damaged or lacks a file, and is deleted; or
      if it may not be read.
    KeyboardInterrupt: With a sentence on how to continue.
    WriteError: If a file cannot be written, for example because the disk is
      full.

  Example:
    ```python
    unpack(pathlib.Path('a.sqlite.lzma'), [pathlib.Path('a.sqlite')])
    ```
  """
  try:
    if archive.suffix == '.lzma':
      _unpack_lzma(archive, targets[0])
    else:
      _unpack_tar(archive, targets)
  except PermissionError as error:
    raise DownloadError(
        f'{archive} cannot be read ({error.strerror}); make it readable'
    ) from error
  except _DamagedError as error:
    archive.unlink()
    raise DownloadError(
        f'{archive} is damaged ({error}) and was deleted; {_ANEW}'
    ) from error
  except KeyboardInterrupt as interrupt:
    raise KeyboardInterrupt(
        f'Interrupted while unpacking {archive}; {_AGAIN}.'
    ) from interrupt


def _fetch(url: str, part: pathlib.Path) -> Optional[str]:
  """Completes a partial download; returns the server's digest, if any."""
  if part.is_symlink():
    part.unlink()  # The bytes would go to another file.
  held = part.stat().st_size if part.exists() else 0
  with _connection_errors_of(url):
    try:
      answer = _open(url, held)
    except urllib.error.HTTPError as error:
      if not held or error.code != _RANGE_NOT_SATISFIABLE:
        raise
      if _whole_size(error.headers) not in (None, held):
        part.unlink()  # It belongs to another file.
        return _fetch(url, part)
      return _said_digest(error.headers)
  with answer:
    if answer.status != http.client.PARTIAL_CONTENT:
      held = 0  # The server ignores ranges and sends the whole file.
    length = answer.headers.get('Content-Length')
    size = None if length is None else held + int(length)
    if not held:
      part.unlink(missing_ok=True)
    with open(part, 'ab', opener=_files.open_no_link) as file:
      with _progress(f'downloading {part.stem}', size, held) as bar:
        for chunk in _chunks(answer, url):
          file.write(chunk)
          bar.update(len(chunk))
  found = part.stat().st_size
  if size is not None and found < size:
    raise DownloadError(
        f'{url} ended after {found:,} of {size:,} bytes; {_AGAIN}'
    )
  return _said_digest(answer.headers)


def _open(url: str, held: int) -> Any:
  """Requests a file from a position on."""
  # No compression, which would change positions.
  headers = {'Accept-Encoding': 'identity'}
  if held:
    headers['Range'] = f'bytes={held}-'
  request = urllib.request.Request(url, headers=headers)
  return urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)


def _chunks(answer: Any, url: str) -> Iterator[bytes]:
  while True:
    with _connection_errors_of(url):
      chunk = answer.read(_CHUNK_BYTES)
    if not chunk:
      return
    yield chunk


@contextlib.contextmanager
def _connection_errors_of(url: str) -> Iterator[None]:
  """Turns network errors into a `DownloadError`."""
  try:
    yield
  except urllib.error.HTTPError as error:
    raise DownloadError(
        f'{url} cannot be downloaded (HTTP status {error.code} '
        f'{error.reason})'
    ) from error
  except (OSError, http.client.HTTPException) as error:
    reason = getattr(error, 'reason', None) or error
    reason = getattr(reason, 'strerror', None) or reason
    raise DownloadError(
        f'{url} cannot be reached ({reason}); check the network and {_AGAIN}'
    ) from error


def _whole_size(headers: Any) -> Optional[int]:
  """Returns the size of the whole file from a 416 response."""
  match = re.fullmatch(r'bytes \*/(\d+)', headers.get('Content-Range') or '')
  return int(match[1]) if match else None


def _said_digest(headers: Any) -> Optional[str]:
  """Returns Google Cloud Storage's MD5 header as a digest."""
  said = ','.join(headers.get_all('x-goog-hash') or ())
  match = re.search(r'md5=([A-Za-z0-9+/=]+)', said)
  return f'md5:{base64.b64decode(match[1]).hex()}' if match else None


def _check_digest(url: str, part: pathlib.Path, digest: Optional[str]) -> None:
  """Deletes the file and raises if its digest is wrong."""
  algorithm, _, expected = (digest or 'sha256:').partition(':')
  found = _digest_of(part, algorithm)
  if not expected:
    print(f'{url} has no known checksum; its {algorithm} is {found}')
  elif found != expected:
    part.unlink()
    raise DownloadError(
        f'{url} has the {algorithm} {found}, expected {expected}, and was '
        f'deleted; {_ANEW}'
    )


def _digest_of(path: pathlib.Path, algorithm: str) -> str:
  digest = hashlib.new(algorithm, usedforsecurity=False)
  with open(path, 'rb') as file:
    for chunk in iter(lambda: file.read(_CHUNK_BYTES), b''):
      digest.update(chunk)
  return digest.hexdigest()


class _DamagedError(Exception):
  """An archive cannot be unpacked."""


@contextlib.contextmanager
def _damages() -> Iterator[None]:
  try:
    yield
  except PermissionError:
    raise  # The archive may be whole.
  except (
      EOFError,
      OSError,
      lzma.LZMAError,
      tarfile.TarError,
      zlib.error,
  ) as error:
    reason = str(error) or type(error).__name__
    raise _DamagedError(reason.splitlines()[0].rstrip(':')) from error


def _unpack_lzma(archive: pathlib.Path, target: pathlib.Path) -> None:
  size = archive.stat().st_size
  with open(archive, 'rb') as packed, lzma.open(packed) as content:
    with _progress(f'unpacking {target.name}', size) as bar:
      _copy(content, target, lambda: bar.update(packed.tell() - bar.n))


def _unpack_tar(archive: pathlib.Path, targets: Sequence[pathlib.Path]) -> None:
  with _damages():
    members = tarfile.open(archive)
  with members:
    with _damages():
      found = {os.path.basename(m.name): m for m in members.getmembers()}
    for target in targets:
      if target.name not in found:
        raise _DamagedError(f'it does not contain {target.name}')
      member = found[target.name]
      # `extractfile` follows links.
      content = members.extractfile(member) if member.isfile() else None
      if content is None:
        raise _DamagedError(f'{target.name} in it is not a file')
      _copy(content, target, lambda: None)


def _copy(
    content: IO[bytes], target: pathlib.Path, report: Callable[[], Any]
) -> None:
  """Copies a stream to a file, which appears when it is complete."""
  with _files.replacing(target) as file:
    while True:
      with _damages():
        chunk = content.read(_CHUNK_BYTES)
      if not chunk:
        return
      file.write(chunk)
      report()


def _progress(title: str, total: Optional[int], initial: int = 0) -> tqdm.tqdm:
  """Returns a progress bar; outside of a terminal it prints few lines."""
  return tqdm.tqdm(
      desc=title,
      total=total,
      initial=initial,
      unit='B',
      unit_scale=True,
      mininterval=0.1 if sys.stderr.isatty() else 10.0,
  )
