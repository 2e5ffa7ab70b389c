# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `fetch` and of the catalogue."""

import contextlib
import hashlib
import io
import lzma
import os
import pathlib
import sys
import tarfile
import types
from unittest import mock

from absl.testing import parameterized

from tasks import catalogue
from tasks import downloads
from tasks import fetch
from tasks import sources
from tests import folder_testing
from tests import program_testing
from tests.tasks import http_testing
from tests.tff_adaptive import file_testing
from tff_adaptive import _files

_CONTENT = b'To be, or not to be\n' * 1000
_PACKED = lzma.compress(_CONTENT)


def _digest(content):
  return f'sha256:{hashlib.sha256(content).hexdigest()}'


def _tar(name):
  file = io.BytesIO()
  with tarfile.open(fileobj=file, mode='w:bz2') as archive:
    member = tarfile.TarInfo(name)
    member.size = len(_CONTENT)
    archive.addfile(member, io.BytesIO(_CONTENT))
  return file.getvalue()


def _dataset(*files, **options):
  return sources.Dataset(
      name='plays', source='A press', licence='none', files=files, **options
  )


class _TestCase(folder_testing.FolderTestCase):

  def run_main(self, *arguments, datasets=tuple(catalogue.DATASETS.values())):
    """Returns the exit code, the standard output and the standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
      stack.enter_context(contextlib.redirect_stdout(out))
      stack.enter_context(contextlib.redirect_stderr(err))
      named = {dataset.name: dataset for dataset in datasets}
      stack.enter_context(mock.patch.object(catalogue, 'DATASETS', named))
      try:
        code = fetch.main([*arguments, f'--data_dir={self.folder}'])
      except SystemExit as end:
        code = end.code
    return code, out.getvalue(), err.getvalue()

  def fetch(self, dataset):
    return self.run_main('plays', datasets=(dataset,))

  def serve(self, content, path):
    return self.enter_context(http_testing.serve(content, path))


class FetchTest(_TestCase):

  def _packed(self, content=_PACKED, digest=_digest(_PACKED)):
    server = self.serve(content, 'plays.sqlite.lzma')
    return server, _dataset(
        sources.RemoteFile(
            url=server.url,
            path='tff/plays.sqlite.lzma',
            digest=digest,
            unpacked=('tff/plays.sqlite',),
        )
    )

  def test_a_packed_file(self):
    server, dataset = self._packed()
    code, out, _ = self.fetch(dataset)
    self.assertEqual(code, 0)
    self.assertEqual(
        file_testing.read_files(self.folder), {'tff/plays.sqlite': _CONTENT}
    )
    self.assertEqual(
        out.splitlines(),
        [
            'A press (licence: none)',
            f'{server.url} (unknown size)',
            f'{self.folder}/tff/plays.sqlite is complete',
        ],
    )
    code, out, err = self.fetch(dataset)
    self.assertEqual((code, err, len(server.ranges)), (0, '', 1))
    self.assertIn('plays.sqlite exists already', out)

  def test_two_processes_do_not_write_the_same_files(self):
    _, dataset = self._packed()
    with _files.locked(self.folder / '.fetch_plays'):
      code, _, err = self.fetch(dataset)
    self.assertEqual(code, 1)
    self.assertRegex(err, '^error: .*fetch_plays is in use')

  def test_an_archive_that_is_complete_is_only_unpacked(self):
    server, dataset = self._packed()
    (self.folder / 'tff').mkdir()
    (self.folder / 'tff/plays.sqlite.lzma').write_bytes(_PACKED)
    self.assertEqual(self.fetch(dataset)[0], 0)
    self.assertEqual(server.ranges, [])
    self.assertEqual(
        file_testing.read_files(self.folder), {'tff/plays.sqlite': _CONTENT}
    )

  def test_several_files_one_of_them_a_kept_archive(self):
    archive = _tar('folder/words')
    packed = self.serve(archive, 'words.tar.bz2')
    plain = self.serve(_CONTENT, 'test.csv')
    code, _, _ = self.fetch(
        _dataset(
            sources.RemoteFile(
                packed.url,
                'words.tar.bz2',
                _digest(archive),
                unpacked=('words',),
                is_kept=True,
            ),
            sources.RemoteFile(plain.url, 'test.csv', _digest(_CONTENT)),
        )
    )
    self.assertEqual(code, 0)
    self.assertEqual(
        file_testing.read_files(self.folder),
        {'test.csv': _CONTENT, 'words': _CONTENT, 'words.tar.bz2': archive},
    )

  def test_a_failure_is_one_sentence_with_what_to_do_by_hand(self):
    server, dataset = self._packed(digest=_digest(b'other'))
    code, _, err = self.fetch(dataset)
    self.assertEqual(code, 1)
    self.assertRegex(
        err.splitlines()[-1],
        rf'^error: {server.url} .* or put tff/plays.sqlite into {self.folder} ',
    )
    self.assertEqual(file_testing.read_files(self.folder), {})

  def test_a_full_disk_and_an_interruption_are_one_sentence(self):
    _, dataset = self._packed()
    part = self.folder / 'tff/plays.sqlite.lzma.part'
    with file_testing.max_file_size(10):
      code, _, err = self.fetch(dataset)
    self.assertEqual(code, 1)
    self.assertStartsWith(
        err.splitlines()[-1], f'error: could not write {part}: '
    )
    with mock.patch.object(
        downloads.tqdm, 'tqdm', side_effect=KeyboardInterrupt
    ):
      code, _, err = self.fetch(dataset)
    self.assertEqual(code, 130)
    self.assertRegex(err, f'^Interrupted; .*{part}; run .*\n$')


class PreparedTest(_TestCase):
  """Files as tensorflow-datasets downloads them."""

  def _fetch(self, download_and_prepare):
    builder = types.SimpleNamespace(download_and_prepare=download_and_prepare)
    tfds = mock.Mock(**{'builder.return_value': builder})
    dataset = _dataset(
        tfds_name='mnist',
        tfds_url=self.serve(b'', '').url,
        by_hand='mnist.npz (arrays)',
    )
    with mock.patch.dict(sys.modules, tensorflow_datasets=tfds):
      with mock.patch.dict(os.environ):
        return self.fetch(dataset), tfds

  def test_it_is_prepared_once(self):
    folder = self.folder / 'tfds/mnist/3.0.1'

    def prepare():
      folder.mkdir(parents=True)
      (folder / 'dataset_info.json').touch()

    (code, out, err), tfds = self._fetch(prepare)
    self.assertEqual((code, err), (0, ''))
    self.assertIn(f'{self.folder}/tfds/mnist is complete\n', out)
    tfds.builder.assert_called_once_with('mnist', data_dir=self.folder / 'tfds')
    (code, out, _), tfds = self._fetch(prepare)
    self.assertEqual(code, 0)
    self.assertIn('tfds/mnist exists already', out)
    tfds.builder.assert_not_called()

  def test_a_failure_is_one_sentence(self):
    (code, _, err), _ = self._fetch(
        mock.Mock(side_effect=RuntimeError('No host.\nTraceback'))
    )
    self.assertEqual(code, 1)
    self.assertEqual(
        err,
        'error: tensorflow-datasets could not prepare '
        f'{self.folder}/tfds/mnist (No host); run the same command again, or '
        f'put mnist.npz (arrays) into {self.folder} by hand.\n',
    )

  def test_without_a_network_nothing_is_tried(self):
    with http_testing.serve(b'') as server:
      url = server.url
    code, _, err = self.fetch(_dataset(tfds_name='mnist', tfds_url=url))
    self.assertEqual(code, 1)
    self.assertStartsWith(
        err, f'error: {url} cannot be reached (Connection refused); check the '
    )


class CommandLineTest(_TestCase):

  @parameterized.named_parameters(
      ('typo', ['emnits'], "no data set 'emnits'; did you mean emnist?"),
      (
          'other_case',
          ['Fashion-MNIS'],
          "no data set 'Fashion-MNIS'; did you mean fashion_mnist?",
      ),
      ('unknown', ['xyz'], "there is no data set 'xyz'; see --list."),
      ('none', [], 'name a data set, one of --list.'),
      ('flag', ['emnist', '--x'], 'unrecognized arguments: --x.'),
  )
  def test_a_wrong_command_is_one_sentence(self, arguments, sentence):
    code, out, err = self.run_main(*arguments)
    self.assertEqual((code, out), (2, ''))
    self.assertStartsWith(err, 'error: ')
    self.assertEndsWith(err, f'{sentence}\n')
    self.assertLen(err.splitlines(), 1)

  def test_the_list_has_a_line_for_each_data_set(self):
    code, out, _ = self.run_main('--list')
    self.assertEqual(code, 0)
    lines = out.splitlines()
    self.assertEqual(
        [line.split()[0] for line in lines],
        [dataset.name for dataset in catalogue.DATASETS.values()],
    )
    self.assertRegex(
        out,
        'tff/shakespeare.sqlite +1.3 MB +TensorFlow Federated, .* licence: ',
    )

  @parameterized.parameters('--help', '--list')
  def test_tensorflow_is_not_imported(self, flag):
    code = (
        'import sys\nfrom tasks import fetch\ntry:\n'
        f'  fetch.main(["{flag}"])\n'
        'except SystemExit as end:\n  assert not end.code\n'
        'assert "tensorflow" not in sys.modules\n'
    )
    done = program_testing.run_command(sys.executable, '-c', code)
    self.assertEqual((done.returncode, done.stderr), (0, ''))


class CatalogueTest(parameterized.TestCase):

  def test_names_and_places_are_unique(self):
    names = [dataset.name for dataset in catalogue.DATASETS.values()]
    self.assertLen(set(names), len(names))
    places = [
        p for dataset in catalogue.DATASETS.values() for p in dataset.places
    ]
    self.assertLen(set(places), len(places))

  @parameterized.named_parameters(
      (file.path, file)
      for dataset in catalogue.DATASETS.values()
      for file in dataset.files
  )
  def test_files(self, file):
    self.assertStartsWith(file.url, 'https://')
    if file.digest is not None:
      self.assertRegex(file.digest, '^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})$')
    for path in (file.path, *file.results):
      self.assertFalse(pathlib.PurePath(path).is_absolute())
    # The formats that `downloads.unpack` can unpack.
    self.assertEqual(
        bool(file.unpacked), file.path.endswith(('.lzma', '.bz2', '.gz'))
    )

  def test_files_of_tff_are_where_its_loaders_look(self):
    places = [
        p for dataset in catalogue.DATASETS.values() for p in dataset.places
    ]
    for place in (
        'tff/emnist_all.sqlite',
        'tff/shakespeare.sqlite',
        'tff/stackoverflow.sqlite',
        'tff/cifar100.sqlite',
        'tff/datasets/stackoverflow.word_count',
        'tff/datasets/stackoverflow.tag_count',
    ):
      self.assertIn(place, places)
