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
"""The flags of the binaries, for the tests of pages that name them."""

import importlib

from absl import flags

from experiments import hparam_flags


def define_flags(binary: str) -> flags.FlagValues:
  """Returns the flags of a binary, unparsed.

  Args:
    binary: The name of a package of `experiments`.
  """
  values = flags.FlagValues()
  if binary == 'train':  # Defines its flags where it is imported.
    hparam_flags.define(values)
  else:
    module = importlib.import_module(f'experiments.{binary}.__main__')
    module.define(values)
  return values
