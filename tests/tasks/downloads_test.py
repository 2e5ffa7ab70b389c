# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `downloads`."""

import base64
import contextlib
import hashlib
import io
import lzma
import tarfile
from unittest import mock

from absl.testing import parameterized

from tasks import downloads
from tests import folder_testing
from tests.tasks import http_testing
from tests.tff_adaptive import file_testing
from tff_adaptive import _files

# Several chunks, no two of them equal.
_CONTENT = b''.join(b'%07d\n' % i for i in range(400_000))
_SHA256 = f'sha256:{hashlib.sha256(_CONTENT).hexdigest()}'
_MD5 = hashlib.md5(_CONTENT)
# Several chunks, too, and packed in no time.
_REPETITIVE = b'0123456789abcdef' * 100_000
_SMALL = _REPETITIVE[:10_000]


class _TestCase(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.path = self.folder / 'new' / 'data.bin'
    self.part = self.folder / 'new' / 'data.bin.part'
    self.stdout = io.StringIO()
    self.enter_context(contextlib.redirect_stdout(self.stdout))
    self.enter_context(contextlib.redirect_stderr(io.StringIO()))

  def serve(self, **options):
    return self.enter_context(http_testing.serve(_CONTENT, **options))

  def write_part(self, content):
    self.part.parent.mkdir()
    self.part.write_bytes(content)


class DownloadTest(_TestCase):

  @parameterized.parameters(_SHA256, f'md5:{_MD5.hexdigest()}')
  def test_a_fresh_download(self, digest):
    server = self.serve()
    downloads.download(server.url, self.path, digest)
    self.assertEqual(self.path.read_bytes(), _CONTENT)
    self.assertFalse(self.part.exists())
    self.assertEqual(server.ranges, [None])

  def test_a_part_is_completed(self):
    server = self.serve()
    self.write_part(_CONTENT[:1000])
    downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.path.read_bytes(), _CONTENT)
    self.assertEqual(server.ranges, ['bytes=1000-'])
    self.assertEqual(server.sent, len(_CONTENT) - 1000)

  def test_a_server_that_sends_only_whole_files(self):
    server = self.serve(knows_ranges=False)
    self.write_part(b'what is there is not of this file')
    downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.path.read_bytes(), _CONTENT)

  @parameterized.parameters('', 'half')
  def test_a_link_in_place_of_the_part_is_not_followed(self, held):
    victim = self.folder / 'victim'
    victim.write_text(held)
    self.part.parent.mkdir()
    self.part.symlink_to(victim)
    downloads.download(self.serve().url, self.path, _SHA256)
    self.assertEqual(victim.read_text(), held)
    self.assertFalse(self.path.is_symlink())
    self.assertEqual(self.path.read_bytes(), _CONTENT)

  def test_a_part_that_is_complete(self):
    server = self.serve()
    self.write_part(_CONTENT)
    downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.path.read_bytes(), _CONTENT)
    self.assertEqual(server.sent, 0)

  def test_a_part_that_is_longer_than_the_file(self):
    server = self.serve()
    self.write_part(_CONTENT + b'more')
    downloads.download(server.url, self.path)
    self.assertEqual(self.path.read_bytes(), _CONTENT)

  @parameterized.parameters(_CONTENT[:0], b'wrong', b'x' + _CONTENT[1:])
  def test_a_wrong_checksum_deletes_the_file(self, start):
    server = self.serve()
    self.write_part(start)
    expected = 'sha256:' + '0' * 64 if not start else _SHA256
    found = hashlib.sha256(start + _CONTENT[len(start) :]).hexdigest()
    with self.assertRaisesRegex(
        downloads.DownloadError,
        f'{server.url} .*{found}, expected {expected[7:]},.* deleted; run the ',
    ):
      downloads.download(server.url, self.path, expected)
    self.assertEqual(file_testing.read_files(self.folder), {})

  def test_the_servers_reports_are_compared(self):
    said = base64.b64encode(_MD5.digest()).decode()
    server = self.serve(headers={'x-goog-hash': f'crc32c=AAAAAA==,md5={said}'})
    downloads.download(server.url, self.path)
    self.assertEqual(self.path.read_bytes(), _CONTENT)
    self.assertEqual(self.stdout.getvalue(), '')
    self.path.unlink()
    self.part.write_bytes(b'x' * 10)
    with self.assertRaisesRegex(
        downloads.DownloadError, f'expected {_MD5.hexdigest()}'
    ):
      downloads.download(server.url, self.path)
    self.assertFalse(self.part.exists())

  def test_without_any_checksum_the_file_is_told(self):
    server = self.serve()
    downloads.download(server.url, self.path)
    self.assertEqual(
        self.stdout.getvalue(),
        f'{server.url} has no known checksum; its sha256 is {_SHA256[7:]}\n',
    )

  @parameterized.parameters(404, 503)
  def test_an_answer_that_is_an_error(self, status):
    server = self.serve(status=status)
    with self.assertRaisesRegex(
        downloads.DownloadError,
        rf'{server.url} cannot be downloaded \(HTTP status {status} ',
    ):
      downloads.download(server.url, self.path)
    self.assertEqual(file_testing.read_files(self.folder), {})

  def test_a_connection_that_is_refused(self):
    with http_testing.serve(_CONTENT) as server:
      url = server.url
    for call in (
        lambda: downloads.download(url, self.path),
        lambda: downloads.check_reachable(url),
    ):
      with self.assertRaisesRegex(
          downloads.DownloadError, rf'{url} cannot .*\(Connection refused\)'
      ):
        call()

  @parameterized.parameters(200, 404)
  def test_a_server_that_answers_is_reachable(self, status):
    downloads.check_reachable(self.serve(status=status).url)

  def test_a_download_that_ends_early_is_kept_and_completed(self):
    server = self.serve(max_sent=1_500_000)
    with self.assertRaisesRegex(
        downloads.DownloadError, f'{server.url} .*1,500,000 of 3,200,000 bytes'
    ):
      downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.part.read_bytes(), _CONTENT[:1_500_000])
    server.max_sent = None
    downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.path.read_bytes(), _CONTENT)
    self.assertEqual(server.ranges, [None, 'bytes=1500000-'])

  def test_an_interruption_keeps_the_part_and_says_how_to_continue(self):
    server = self.serve()
    bar = mock.MagicMock()
    bar.__enter__.return_value.update.side_effect = KeyboardInterrupt
    with mock.patch.object(downloads.tqdm, 'tqdm', return_value=bar):
      with self.assertRaisesRegex(KeyboardInterrupt, f'{self.part}; run the'):
        downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.part.read_bytes(), _CONTENT[: 1 << 20])
    downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.path.read_bytes(), _CONTENT)
    self.assertEqual(server.ranges, [None, f'bytes={1 << 20}-'])

  def test_a_full_disk(self):
    server = self.serve()
    with file_testing.max_file_size(1 << 20):
      with self.assertRaisesRegex(
          _files.WriteError, f'could not write {self.part}: '
      ):
        downloads.download(server.url, self.path, _SHA256)
    downloads.download(server.url, self.path, _SHA256)
    self.assertEqual(self.path.read_bytes(), _CONTENT)


class UnpackTest(_TestCase):

  def setUp(self):
    super().setUp()
    self.archive = self.folder / 'data.bin.lzma'
    self.archive.write_bytes(lzma.compress(_REPETITIVE, preset=0))

  def write_tar(self, names):
    path = self.folder / 'data.tar.bz2'
    with tarfile.open(path, 'w:bz2') as archive:
      for name in names:
        member = tarfile.TarInfo(f'./folder/{name}')
        member.size = len(_SMALL)
        archive.addfile(member, io.BytesIO(_SMALL))
    return path

  @parameterized.parameters(lzma.FORMAT_XZ, lzma.FORMAT_ALONE)
  def test_lzma(self, form):
    self.archive.write_bytes(lzma.compress(_REPETITIVE, format=form, preset=0))
    downloads.unpack(self.archive, [self.path])
    self.assertEqual(self.path.read_bytes(), _REPETITIVE)
    self.assertTrue(self.archive.exists())

  @parameterized.parameters(lzma, tarfile)
  def test_an_archive_that_may_not_be_read_stays(self, opener):
    path = self.archive if opener is lzma else self.write_tar(['data.bin'])
    error = PermissionError(13, 'Permission denied')
    with mock.patch.object(opener, 'open', side_effect=error):
      with self.assertRaisesRegex(downloads.DownloadError, 'make it readable'):
        downloads.unpack(path, [self.path])
    self.assertTrue(path.exists())

  def test_tar(self):
    archive = self.write_tar(['a.csv', 'b.csv', 'c.csv'])
    downloads.unpack(
        archive, [self.path.with_name(n) for n in ('a.csv', 'c.csv')]
    )
    self.assertEqual(
        file_testing.read_files(self.path.parent),
        {'a.csv': _SMALL, 'c.csv': _SMALL},
    )

  def test_a_missing_member(self):
    archive = self.write_tar(['a.csv'])
    with self.assertRaisesRegex(downloads.DownloadError, r'is damaged \(it'):
      downloads.unpack(archive, [self.path])

  @parameterized.parameters(tarfile.SYMTYPE, tarfile.DIRTYPE)
  def test_a_member_that_is_no_file(self, kind):
    archive = self.folder / 'data.tar.bz2'
    with tarfile.open(archive, 'w:bz2') as file:
      member = tarfile.TarInfo(self.path.name)
      member.type, member.linkname = kind, '/etc/hostname'
      file.addfile(member)
    with self.assertRaisesRegex(downloads.DownloadError, r'\(data.bin in it'):
      downloads.unpack(archive, [self.path])
    self.assertFalse(self.path.exists())

  @parameterized.parameters('data.bin.lzma', 'data.tar.bz2', 'data.tar.gz')
  def test_a_damaged_archive_is_deleted(self, name):
    archive = self.folder / name
    whole = self.archive.read_bytes()
    if name.endswith('bz2'):
      whole = self.write_tar(['data.bin']).read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    with self.assertRaisesRegex(
        downloads.DownloadError,
        rf'^{archive} .*\(.+\) and was deleted; run the',
    ):
      downloads.unpack(archive, [self.path])
    self.assertFalse(archive.exists())
    self.assertFalse(self.path.exists())

  def test_an_interruption_leaves_the_archive_alone(self):
    bar = mock.MagicMock()
    bar.__enter__.return_value.update.side_effect = KeyboardInterrupt
    bar.__enter__.return_value.n = 0
    with mock.patch.object(downloads.tqdm, 'tqdm', return_value=bar):
      with self.assertRaisesRegex(KeyboardInterrupt, f'{self.archive}; run'):
        downloads.unpack(self.archive, [self.path])
    self.assertEqual(
        list(file_testing.read_files(self.folder)), ['data.bin.lzma']
    )

  def test_a_full_disk(self):
    with file_testing.max_file_size(1 << 20):
      with self.assertRaisesRegex(
          _files.WriteError, f'could not write {self.path}: '
      ):
        downloads.unpack(self.archive, [self.path])
    self.assertTrue(self.archive.exists())
