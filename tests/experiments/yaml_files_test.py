# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading YAML files into attrs classes."""

from collections.abc import Mapping
from typing import Optional, Union

from absl.testing import parameterized
import attrs

from experiments import yaml_files


@attrs.frozen
class _Item:
  name: str
  rate: float = 0.1
  rounds: int = attrs.field(default=1, validator=attrs.validators.ge(1))
  is_fast: bool = False


@attrs.frozen
class _File:
  items: Mapping[str, _Item] = {}
  names: tuple[str, ...] = ()
  like: Union[str, tuple[Union[str, _Item], ...]] = ()
  title: Optional[str] = None


def _read(text):
  return yaml_files.structure(yaml_files.parse(text, 'a.yaml'), _File, 'a.yaml')


class YamlFilesTest(parameterized.TestCase):

  @parameterized.parameters(
      ('{}', _File()),
      ('{title: a, names: [b, c]}', _File(title='a', names=('b', 'c'))),
      ('items: {a: {rate: 1}}', _File(items={'a': _Item('a', 1.0)})),
      ('like: a', _File(like='a')),
      ('like: [a, {name: b}]', _File(like=('a', _Item('b')))),
  )
  def test_reads(self, text, expected):
    self.assertEqual(_read(text), expected)

  @parameterized.parameters(
      ('{a: 1, title: [2]}', ['a.yaml: ', "'a'", 'a.yaml.title', '[2]']),
      ('like: [{rate: 1}]', ['a.yaml.like[0].name']),
      ('items: {a: {rate: b}}', ["a.yaml.items['a'].rate", "'b'"]),
      ('items: {a: {rounds: 0}}', ["a.yaml.items['a']", 'rounds', '0']),
      ('items: {a: {rounds: 1.0}}', ["a.yaml.items['a'].rounds", '1.0']),
      ('items: {a: {rounds: true}}', ["a.yaml.items['a'].rounds", 'True']),
      ('items: {a: {is_fast: 1}}', ["a.yaml.items['a'].is_fast", '1']),
      ('items: {a: 1}', ['a.yaml.items', '1']),
      ('items: [a]', ['a.yaml.items', 'a']),
      ('names: abc', ['a.yaml.names', "'abc'"]),
      ('names: [1]', ['a.yaml.names[0]', '1']),
      ('like: 1', ['a.yaml.like', '1']),
      ('[a]', ['a.yaml', "['a']"]),
      ('{names: [a], names: [b]}', ['a.yaml', "'names'", 'line 1']),
      ('names: [', ['a.yaml', 'line 1']),
  )
  def test_an_error_names_every_place_and_what_was_found(self, text, named):
    with self.assertRaises(yaml_files.DataFileError) as caught:
      _read(text)
    for name in named:
      self.assertIn(name, str(caught.exception))
