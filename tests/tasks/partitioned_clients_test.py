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
"""Tests of `partitioned_clients`."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tasks import partitioned_clients


class PartitionedClientsTest(parameterized.TestCase):

  def _clients(self, **changes):
    examples = {'x': np.arange(1200), 'y': np.arange(1200) % 10}
    arguments = dict(
        partition='iid',
        alpha=0.5,
        examples_per_client=None,
        shards_per_client=2,
        min_size=1,
        cap=False,
    )
    return partitioned_clients.to_clients(
        examples, 2, 0, **{**arguments, **changes}
    )

  @parameterized.parameters(
      (dict(), 1000),
      (dict(examples_per_client='30'), 60),
      (dict(partition='shards'), 1200),
      (dict(partition='dirichlet_per_class'), 1200),
  )
  def test_number_of_examples(self, changes, total):
    self.assertEqual(self._clients(**changes).total_examples, total)

  def test_clients_hold_whole_examples(self):
    clients = self._clients(examples_per_client='30')
    self.assertEqual(clients.client_ids, ('client_000', 'client_001'))
    for client_id in clients.client_ids:
      examples = clients.examples(client_id)
      np.testing.assert_array_equal(examples['x'] % 10, examples['y'])


if __name__ == '__main__':
  absltest.main()
