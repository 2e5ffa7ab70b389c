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
"""The cohort and the round that the tests of FedOpt share."""

from tests.tff_adaptive import testing


def clients():
  """Two clients, with 10 and 7 examples."""
  return [testing.client(10, seed=1), testing.client(7, seed=2)]


def run_round(process, cohort, state=None):
  """The output of a round, by default of the first one."""
  return process.next(state or process.initialize(), cohort)
