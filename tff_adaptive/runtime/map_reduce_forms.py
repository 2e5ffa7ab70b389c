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
"""TFF's computations as the parts of a MapReduce round."""

from collections.abc import Iterator
import contextlib

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _compat
from tff_adaptive.runtime import errors


def _no_optimization() -> tf.compat.v1.ConfigProto:
  """A configuration that leaves graphs alone; they are optimized later."""
  config = tf.compat.v1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  return config


def uses_secure_sums(computation: tff.framework.ConcreteComputation) -> bool:
  """Whether a computation asks for secure aggregation."""
  return _names_intrinsic(computation, b'federated_secure_')


def uses_secure_modular_sums(
    computation: tff.framework.ConcreteComputation,
) -> bool:
  """Whether a computation is about distributed differential privacy."""
  return _names_intrinsic(computation, b'federated_secure_modular_sum')


def _names_intrinsic(
    computation: tff.framework.ConcreteComputation, name: bytes
) -> bool:
  # The tree of the computation would say it too, and takes a second to print.
  proto = tff.framework.serialize_computation(computation)
  return name in proto.SerializeToString()


def _is_federated(type_spec: _compat.Type, placement) -> bool:
  return (
      isinstance(type_spec, _compat.FederatedType)
      and type_spec.placement is placement
  )


def takes_clients(signature: _compat.FunctionType) -> bool:
  """Whether a computation has an argument at the clients."""
  parameter = signature.parameter
  if isinstance(parameter, _compat.StructType):
    fields = [field for _, field in tff.structure.iter_elements(parameter)]
  else:
    fields = [parameter]
  return any(_is_federated(field, _compat.CLIENTS) for field in fields)


@attrs.frozen(eq=False)
class RoundForm:
  """A computation as the parts of a MapReduce round.

  Attributes:
    form: The parts, of a computation from (state, clients) to (state, result).
    state_type: The type at the server; an empty struct if there is none.
    clients_type: The type at one client.
    result_type: The type of (state, result).
    returns_state: Whether the computation returns both, or the result alone.
  """

  form: tff.backends.mapreduce.MapReduceForm
  state_type: _compat.Type
  clients_type: _compat.Type
  result_type: _compat.Type
  returns_state: bool


def _as_state_and_clients(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """The computation as (state, clients) to (state, result).

  A MapReduce form is of a computation that takes a state at the server and a
  value at the clients, and returns a state and a result. What takes the clients
  alone, or returns a result alone, is brought into this form.
  """
  signature = computation.type_signature
  parameter, result = signature.parameter, signature.result
  if _is_federated(parameter, _compat.CLIENTS):

    @_compat.federated_computation(
        _compat.FederatedType(_compat.StructType([]), _compat.SERVER), parameter
    )
    def with_state(state, clients):
      return state, computation(clients)

    return with_state

  if not (
      isinstance(parameter, _compat.StructType)
      and len(parameter) == 2
      and _is_federated(parameter[0], _compat.SERVER)
      and _is_federated(parameter[1], _compat.CLIENTS)
  ):
    raise errors.UnsupportedComputationError(
        'it takes neither a value at the server and one at the clients, nor one'
        f' at the clients alone: {parameter}'
    )
  returns_state = (
      isinstance(result, _compat.StructType)
      and len(result) == 2
      and parameter[0].is_assignable_from(result[0])
  )
  if returns_state:
    return computation

  @_compat.federated_computation(parameter[0], parameter[1])
  def returning_state(state, clients):
    return state, computation(state, clients)

  return returning_state


def get_round_form(
    computation: tff.framework.ConcreteComputation,
) -> RoundForm:
  """Splits a computation into the parts of a MapReduce round.

  Secure sums become sums in the clear, as in TFF's test runtime.

  Args:
    computation: A computation of a value at the clients and, before it, one at
      the server.

  Returns:
    The parts.

  Raises:
    UnsupportedComputationError: If the computation has not the shape of a
      MapReduce round.
  """
  with _errors_as_unsupported('it has not the shape of a MapReduce round'):
    whole = _as_state_and_clients(computation)
    # Taken before secure sums are replaced, which loses Python's containers.
    state_type, clients_type = whole.type_signature.parameter
    result_type = whole.type_signature.result
    returns_state = whole is computation
    if uses_secure_sums(whole):
      whole = tff.backends.test.replace_secure_intrinsics_with_bodies(whole)
    form = tff.backends.mapreduce.get_map_reduce_form_for_computation(
        whole, _no_optimization()
    )
  return RoundForm(
      form, state_type.member, clients_type.member, result_type, returns_state
  )


@contextlib.contextmanager
def _errors_as_unsupported(reason: str) -> Iterator[None]:
  """Turns TFF's errors, which are of many kinds, into one."""
  try:
    yield
  except errors.UnsupportedComputationError:
    raise
  except Exception as e:
    detail = (str(e).splitlines() or [type(e).__name__])[0]
    raise errors.UnsupportedComputationError(f'{reason}: {detail}') from e


def get_initialization(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Turns a computation without arguments into TensorFlow alone.

  Args:
    computation: A computation that returns one value at the server.

  Returns:
    A computation that returns the same.

  Raises:
    UnsupportedComputationError: If there is more to it.
  """
  with _errors_as_unsupported('it does not return one value at the server'):
    return tff.backends.mapreduce.get_state_initialization_computation(
        computation, _no_optimization()
    )
