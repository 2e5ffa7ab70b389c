# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of the weighted form of aggregators that users give."""

from absl.testing import parameterized
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import weighting

_WEIGHTED = tff.aggregators.WeightedAggregationFactory


class ToWeightedTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(True, False)
  def test_default_is_the_mean(self, weighs_examples):
    found = weighting.to_weighted(None, weighs_examples, '`a`')
    self.assertIsInstance(found, tff.aggregators.MeanFactory)

  @parameterized.parameters(True, False)
  def test_weighted_stays(self, weighs_examples):
    given = tff.learning.robust_aggregator()
    self.assertIs(weighting.to_weighted(given, weighs_examples, '`a`'), given)

  def test_unweighted_ignores_weights_that_are_uniform(self):
    given = tff.aggregators.SumFactory()
    self.assertIsInstance(weighting.to_weighted(given, False, '`a`'), _WEIGHTED)

  def test_unweighted_under_weights_by_examples_raises(self):
    with self.assertRaisesRegex(
        ValueError, '`a` is unweighted \\(SumFactory\\).*UNIFORM'
    ):
      weighting.to_weighted(tff.aggregators.SumFactory(), True, '`a`')

  @parameterized.parameters(True, False)
  def test_anything_else_raises(self, weighs_examples):
    with self.assertRaisesRegex(TypeError, '`a` must be.*found.*float'):
      weighting.to_weighted(0.5, weighs_examples, '`a`')


class CheckNamesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(({},), ({'b': 1},), ({'b': 1, 'a': 2},))
  def test_names_that_are_sent_pass(self, given):
    weighting.check_names(given, ['a', 'b'], '`x`')

  @parameterized.parameters(
      (['b', 'a'], "`x` has.*'c', which no client sends.*\\['a', 'b'\\]"),
      ([], "'c'.*clients send nothing"),
  )
  def test_other_names_raise(self, sent, message):
    with self.assertRaisesRegex(ValueError, message):
      weighting.check_names({'c': 1}, sent, '`x`')

  def test_no_names_raise(self):
    with self.assertRaisesRegex(TypeError, '`x` must map names.*SumFactory'):
      weighting.check_names(tff.aggregators.SumFactory(), ['a'], '`x`')


if __name__ == '__main__':
  tf.test.main()
