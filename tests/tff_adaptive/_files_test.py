# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of files that are replaced atomically, and of locks on folders."""

import errno
import os
import pathlib
import re
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized

from tests import folder_testing
from tests.tff_adaptive import file_testing
from tff_adaptive import _files


class AtomicFilesTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.path = self.folder / 'new' / 'file'

  def _write(self, data):
    with _files.replacing(self.path) as file:
      file.write(data)

  def _assert_only(self, data):
    """Asserts that there is nothing but the file, with this in it."""
    self.assertEqual(os.listdir(self.path.parent), ['file'])
    self.assertEqual(self.path.read_bytes(), data)

  def test_makes_and_replaces(self):
    self._write(b'old')
    self._assert_only(b'old')
    self._write(b'new')
    self._assert_only(b'new')

  @parameterized.parameters('Straße', 'Straße'.encode())
  def test_writes_a_text_or_bytes(self, data):
    _files.write(self.path, data)
    self._assert_only('Straße'.encode())

  def test_the_file_is_as_before_until_the_end(self):
    self._write(b'old')
    with _files.replacing(str(self.path)) as file:
      file.write(b'new')
      file.flush()
      self.assertEqual(self.path.read_bytes(), b'old')
      (temporary,) = self._temporaries()
      self.assertTrue(_files.is_temporary(temporary, self.path))
      self.assertEqual(temporary.read_bytes(), b'new')
    self._assert_only(b'new')

  def test_is_on_the_disk_before_it_is_renamed(self):
    done = []
    originals = {name: getattr(os, name) for name in ('fsync', 'replace')}

    def call(name):
      def called(file, *args):
        is_file = name == 'fsync' and os.path.isfile(f'/proc/self/fd/{file}')
        done.append(f'{name} {"file" if is_file else "folder"}')
        originals[name](file, *args)

      return called

    with mock.patch.multiple(os, fsync=call('fsync'), replace=call('replace')):
      self._write(b'')
    self.assertEqual(done, ['fsync file', 'replace folder', 'fsync folder'])

  @parameterized.parameters(errno.EINVAL, errno.EIO)
  def test_a_folder_may_have_no_sync(self, number):
    sync = os.fsync

    def fail_for_folders(file):
      if os.path.isdir(f'/proc/self/fd/{file}'):
        raise OSError(number, os.strerror(number))
      sync(file)

    with mock.patch.object(os, 'fsync', fail_for_folders):
      if number == errno.EINVAL:
        self._write(b'new')
      else:
        with self.assertRaises(_files.WriteError):
          self._write(b'new')
    self._assert_only(b'new')

  @parameterized.parameters(RuntimeError, KeyboardInterrupt)
  def test_an_error_within_changes_nothing(self, error):
    self._write(b'old')
    with self.assertRaises(error):
      with _files.replacing(self.path) as file:
        file.write(b'new')
        raise error
    self._assert_only(b'old')

  @parameterized.parameters(0, 1, 20000)
  def test_a_full_disk_is_a_sentence_and_changes_nothing(self, max_size):
    self._write(b'old')
    with file_testing.max_file_size(max_size):
      with self.assertRaisesRegex(
          _files.WriteError, f'^could not write {self.path}: File too large$'
      ):
        self._write(b'new' * 10000)
    self._assert_only(b'old')

  def test_a_folder_that_cannot_be_made_is_a_sentence(self):
    self.path.parent.write_text('')
    with self.assertRaisesRegex(
        _files.WriteError, f'^could not write {self.path}: .* exists$'
    ):
      self._write(b'new')

  def _temporaries(self):
    return sorted(self.path.parent.glob('*.tmp'))

  def test_a_file_or_link_in_the_way_is_left_as_it_is(self):
    self._write(b'old')
    victim = self.folder / 'victim'
    victim.write_bytes(b'mine')
    name = self.path.name
    taken = self.path.with_name(f'{name}.{"0" * 16}.tmp')
    for make in (taken.symlink_to, taken.hardlink_to):
      make(victim)
      with mock.patch.object(_files.secrets, 'token_hex', lambda n: '00' * n):
        with self.assertRaisesRegex(_files.WriteError, 'File exists$'):
          self._write(b'new')
      self.assertTrue(taken.is_symlink() or taken.is_file())
      taken.unlink()
      self._assert_only(b'old')
    self.assertEqual(victim.read_bytes(), b'mine')

  def test_a_link_of_the_old_name_is_not_followed(self):
    victim = self.folder / 'victim'
    victim.write_bytes(b'mine')
    self.path.parent.mkdir(parents=True)
    for name in (f'{self.path.name}.tmp', self.path.name):
      self.path.with_name(name).symlink_to(victim)
    self._write(b'new')
    self.assertEqual(victim.read_bytes(), b'mine')
    self.assertFalse(self.path.is_symlink())
    self.assertEqual(self.path.read_bytes(), b'new')

  def test_a_link_is_not_appended_to(self):
    link = self.folder / 'link'
    link.symlink_to(self.folder / 'victim')
    with self.assertRaisesRegex(OSError, 'symbolic links'):
      open(link, 'ab', opener=_files.open_no_link)
    self.assertFalse((self.folder / 'victim').exists())

  def test_two_writers_at_once_do_not_mix(self):
    with _files.replacing(self.path) as one:
      with _files.replacing(self.path) as two:
        two.write(b'two')
        one.write(b'one')
      self.assertEqual(self.path.read_bytes(), b'two')
    self._assert_only(b'one')

  def test_a_long_name_is_written(self):
    path = self.path.with_name('x' * 255)
    _files.write(path, b'new')
    self.assertEqual(path.read_bytes(), b'new')

  def test_leftover_files_are_removed(self):
    self._write(b'new')
    temporary = self.path.with_name(f'{self.path.name}.0a.tmp')
    temporary.write_bytes(b'half')
    other = self.path.with_name('other.tmp')
    other.mkdir()
    _files.remove_temporaries(self.path.parent)
    other.rmdir()
    self._assert_only(b'new')
    _files.remove_temporaries(self.folder / 'absent')


# Takes the lock if it can, says so, and waits for its standard input to end.
_PROGRAM = """
import pathlib, sys
from tff_adaptive import _files
try:
  with _files.locked(pathlib.Path(sys.argv[1])):
    print('in', flush=True)
    sys.stdin.read()
except _files.FolderInUseError as error:
  print(error, flush=True)
"""


class CSVTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.path = self.folder / 'rows.csv'

  def test_what_was_written_is_read_back(self):
    rows = [
        ['a', ''],
        ['one\ntwo', 'a\rb'],
        ['"', 'x' * 200_000],
        ['\r\n', 'ö,\0'],
        ['', ' '],
    ]
    content = _files.to_csv(rows)
    self.assertStartsWith(content, b'a,\n')
    self.path.write_bytes(content)
    read = [fields for _, fields in _files.read_lines(self.path)]
    self.assertEqual(read, rows)

  @parameterized.parameters(
      ('a,b\n1,"2\n3,4\n', 2, 'it opens a double quote that is never closed'),
      (
          'a,b\n\n1,"2\n3,4" \n',
          3,
          'the double quote that closes a cell in line 4 is followed by text',
      ),
      (
          '"a"b\n',
          1,
          'the double quote that closes a cell is followed by text',
      ),
  )
  def test_stray_quotes_are_damage(self, text, line_num, reason):
    self.path.write_text(text)
    with self.assertRaises(_files.DamagedCSVError) as caught:
      list(_files.read_lines(self.path))
    self.assertEqual(str(caught.exception), reason)
    self.assertEqual(caught.exception.line_num, line_num)

  def test_a_line_without_an_end_is_still_being_written(self):
    self.path.write_bytes(b'\xef\xbb\xbfa,b\r\n\r\n1,2\r\n3,"')
    self.assertEqual(
        list(_files.read_lines(self.path)), [(1, ['a', 'b']), (3, ['1', '2'])]
    )


class FolderLocksTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = folder_testing.new(self) / 'a' / 'b'

  def _start(self):
    process = subprocess.Popen(
        [sys.executable, '-c', _PROGRAM, self.folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=pathlib.Path(__file__).parents[2],
        text=True,
    )
    self.addCleanup(process.communicate)
    return process

  def test_the_second_names_the_first(self):
    with _files.locked(self.folder):
      with self.assertRaisesRegex(
          _files.FolderInUseError,
          rf'^{self.folder} is in use by process {os.getpid()} \(.+\); wait',
      ):
        with _files.locked(self.folder):
          self.fail('Both were let in.')

  def test_names_the_program_of_a_package(self):
    command = ['/a/train/__main__.py', '--seed=1']
    with mock.patch.object(sys, 'argv', command), _files.locked(self.folder):
      with self.assertRaisesRegex(_files.FolderInUseError, r'\(train --seed=1'):
        with _files.locked(self.folder):
          self.fail('Both were let in.')

  def test_nothing_is_left(self):
    with _files.locked(self.folder):
      pass
    self.assertFalse(self.folder.parent.exists())
    self.folder.mkdir(parents=True)
    (self.folder / 'file').touch()
    with _files.locked(self.folder):
      pass
    self.assertEqual(os.listdir(self.folder), ['file'])

  def test_ends_with_a_process_that_is_killed(self):
    process = self._start()
    self.assertEqual(process.stdout.readline(), 'in\n')
    with self.assertRaisesRegex(
        _files.FolderInUseError, f'process {process.pid} '
    ):
      with _files.locked(self.folder):
        self.fail('Both were let in.')
    process.kill()
    process.wait()
    with _files.locked(self.folder):
      pass
    self.assertEmpty(os.listdir(self.folder))

  def test_is_kept_by_those_that_inherit_it(self):
    with _files.locked(self.folder) as descriptor:
      child = subprocess.Popen(
          ['sleep', '100'], pass_fds=[descriptor], stdin=subprocess.DEVNULL
      )
      self.addCleanup(child.wait)
      self.addCleanup(child.kill)
      (self.folder / _files.LOCK_NAME).rename(self.folder / 'kept')
    # As if this process had been killed before it removed the file.
    text = (self.folder / 'kept').read_text()
    (self.folder / 'kept').rename(self.folder / _files.LOCK_NAME)
    (self.folder / _files.LOCK_NAME).write_text(
        re.sub(r'^\d+', f'{2**30}', text)
    )
    with mock.patch.object(_files, '_SECONDS_FOR_LEFTOVERS', 0):
      with self.assertRaisesRegex(
          _files.FolderInUseError, 'a leftover child of process'
      ):
        with _files.locked(self.folder):
          self.fail('Both were let in.')

    def end_child(seconds):
      del seconds  # Unused.
      child.kill()
      child.wait()

    with mock.patch.object(_files.time, 'sleep', side_effect=end_child) as wait:
      with _files.locked(self.folder):
        self.assertIsNotNone(child.poll())
    wait.assert_called()

  def test_one_of_two_at_once_gets_in_every_time(self):
    for _ in range(15):
      both = [self._start(), self._start()]
      said = sorted(process.stdout.readline() for process in both)
      self.assertEqual(said[1], 'in\n', said)
      self.assertIn('is in use by', said[0])
      for process in both:
        process.communicate()
      # The folder stays where the one that was refused had made it.
      self.assertFalse((self.folder / _files.LOCK_NAME).exists())
