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
"""The names of TFF's language layer, in one place.

After release 0.87 TFF moved its language layer (types, placements and the
`federated_*` operators) to the package `federated_language`. The library takes
them from here, so that following the move means changing this file alone.
"""

import tensorflow_federated as tff

CLIENTS = tff.CLIENTS
SERVER = tff.SERVER

FederatedType = tff.FederatedType
FunctionType = tff.FunctionType
SequenceType = tff.SequenceType
StructType = tff.StructType
StructWithPythonType = tff.StructWithPythonType
TensorType = tff.TensorType
Type = tff.Type
to_type = tff.to_type
tensorflow_to_type = tff.types.tensorflow_to_type

federated_aggregate = tff.federated_aggregate
federated_broadcast = tff.federated_broadcast
federated_computation = tff.federated_computation
federated_eval = tff.federated_eval
federated_map = tff.federated_map
federated_sum = tff.federated_sum
federated_value = tff.federated_value
federated_zip = tff.federated_zip
