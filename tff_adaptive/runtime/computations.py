# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads TFF computations: their graphs and the parts of a round."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
from typing import Any, Optional

import attrs
from google.protobuf import message as message_lib
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import values

_COMPUTATION = 'tensorflow_federated.v0.Computation'
_TYPE = 'tensorflow_federated.v0.Type'
_SEQUENCE_TYPE = 'tensorflow_federated.v0.SequenceType'

# The parts of a round besides the clients' work, as in TFF's MapReduce form. A
# part's index keys its random numbers.
SERVER_PARTS = ('prepare', 'zero', 'accumulate', 'merge', 'report', 'update')


class UnsupportedComputationError(Exception):
  """A computation cannot be compiled; the text says why."""


class NoLoweringError(UnsupportedComputationError):
  """A computation cannot be a program of XLA; the text is a clause."""


@attrs.frozen(eq=False)
class Serialized:
  """A computation as TFF stores it: a graph and the names of its tensors.

  Attributes:
    graph_def: A `GraphDef`; it may be modified in place.
    parameters: The tensor names of the parameter, in the order of its leaves.
    results: The tensor names of the result, in the same way.
    initialize_op: The name of the op that initializes variables, or ''.
  """

  graph_def: Any
  parameters: list[str]
  results: list[str]
  initialize_op: str


def binding_names(binding: Any) -> list[str]:
  """Returns the tensor names of a binding, in the order of the type's leaves.

  The name of a sequence is that of its variant tensor.

  Raises:
    UnsupportedComputationError: If a sequence has no variant tensor.
  """
  kind = binding.WhichOneof('binding')
  if kind is None:
    return []
  if kind == 'struct':
    return [
        name
        for element in binding.struct.element
        for name in binding_names(element)
    ]
  if kind == 'tensor':
    return [binding.tensor.tensor_name]
  name = binding.sequence.variant_tensor_name
  if not name:
    raise UnsupportedComputationError(
        'a sequence is stored as a graph instead of a variant tensor'
    )
  return [name]


def _tensorflow_of(
    computation: tff.framework.ConcreteComputation,
) -> Optional[Any]:
  """Returns a computation's TensorFlow, None if it is not pure TensorFlow."""
  proto = tff.framework.serialize_computation(computation)
  if proto.WhichOneof('computation') != 'tensorflow':
    return None
  return proto.tensorflow


def _messages_in(message: Any) -> Iterator[Any]:
  """Yields the messages in the fields of one."""
  for field, value in message.ListFields():
    if field.message_type is not None:
      yield from [value] if isinstance(value, message_lib.Message) else value


def parts(message: Any, kind: str) -> Iterator[Any]:
  """Yields all computations of a kind within a message of a computation.

  Args:
    message: A protocol buffer.
    kind: The field that such a computation has, for example 'tensorflow'.
  """
  if message.DESCRIPTOR.full_name == _COMPUTATION:
    if message.WhichOneof('computation') == kind:
      yield message
  for part in _messages_in(message):
    if part.DESCRIPTOR.full_name != _TYPE:
      yield from parts(part, kind)


def has_sequence(message: Any) -> bool:
  """Returns whether a message of a type has a sequence in it."""
  return message.DESCRIPTOR.full_name == _SEQUENCE_TYPE or any(
      map(has_sequence, _messages_in(message))
  )


def is_tensorflow(computation: tff.framework.ConcreteComputation) -> bool:
  """Returns whether a computation is pure TensorFlow."""
  return _tensorflow_of(computation) is not None


def read(computation: tff.framework.ConcreteComputation) -> Serialized:
  """Returns a copy of a computation's graph, with its inputs and outputs.

  Raises:
    UnsupportedComputationError: If it is not pure TensorFlow, or a sequence has
      no variant tensor.
  """
  tensorflow = _tensorflow_of(computation)
  if tensorflow is None:
    raise UnsupportedComputationError(
        f'{computation.type_signature} is not pure TensorFlow'
    )
  graph_def = tf.compat.v1.GraphDef()
  tensorflow.graph_def.Unpack(graph_def)
  parameters: list[str] = []
  if tensorflow.HasField('parameter'):
    parameters = binding_names(tensorflow.parameter)
  return Serialized(
      graph_def,
      parameters,
      binding_names(tensorflow.result),
      tensorflow.initialize_op,
  )


def _no_optimization() -> tf.compat.v1.ConfigProto:
  """Returns a configuration without Grappler; graphs are optimized later."""
  config = tf.compat.v1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  return config


def uses_secure_sums(computation: tff.framework.ConcreteComputation) -> bool:
  """Returns whether a computation uses secure aggregation."""
  # The computation's tree would tell too, but takes a second to print.
  proto = tff.framework.serialize_computation(computation)
  return b'federated_secure_' in proto.SerializeToString()


def _federated_types(type_spec: tff.Type) -> list[tff.FederatedType]:
  """Returns the federated types in a type, in order."""
  places = values.places(type_spec)
  return [place for place in places if isinstance(place, tff.FederatedType)]


def takes_clients(signature: tff.FunctionType) -> bool:
  """Returns whether a computation has an argument at the clients."""
  return any(
      federated.placement is tff.CLIENTS
      for federated in _federated_types(signature.parameter)
  )


def differs_by_client(type_spec: tff.Type) -> bool:
  """Returns whether a value of a type differs between clients."""
  return (
      isinstance(type_spec, tff.FederatedType)
      and type_spec.placement is tff.CLIENTS
      and not type_spec.all_equal
  )


@attrs.frozen(eq=False)
class RoundForm:
  """A computation split into the parts of a MapReduce round.

  Attributes:
    parts: The parts of a computation from (state, clients) to (state, result):
      `'work'` and `SERVER_PARTS`.
    split: Maps the computation's argument to (state, clients); clients is None
      if they have no value of their own.
    state_type: The type at the server; an empty struct without one.
    clients_type: The type at one client.
    result_type: The type of (state, result).
    returns_state: Whether the computation returns (state, result), or only the
      result.
  """

  parts: Mapping[str, tff.framework.ConcreteComputation]
  split: Callable[[Any], tuple[Any, Any]]
  state_type: tff.Type
  clients_type: tff.Type
  result_type: tff.Type
  returns_state: bool


def _is_state_and_clients(signature: tff.FunctionType) -> bool:
  """Returns whether a computation maps (state, clients) to (state, result)."""
  parameter, result = signature.parameter, signature.result
  places = [tff.SERVER, tff.CLIENTS]
  return (
      isinstance(parameter, tff.StructType)
      and [getattr(field, 'placement', None) for field in parameter] == places
      and not parameter[1].all_equal
      and isinstance(result, tff.StructType)
      and len(result) == 2
      and parameter[0].is_assignable_from(result[0])
  )


def _joined_type(
    types: Sequence[tff.FederatedType], placement: Any
) -> tff.FederatedType:
  """Returns the type of all values as a struct; of a single value its own."""
  members = [federated.member for federated in types]
  member = members[0] if len(members) == 1 else tff.StructType(members)
  return tff.FederatedType(member, placement)


def _as_state_and_clients(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Rewrites a computation as one from (state, clients) to (state, result).

  A MapReduce form needs a state at the server and a value at the clients, and
  returns a state and a result. This function adapts computations that take any
  struct of values at both, or return only a result. Values that are equal at
  all clients become part of the state.
  """
  signature = computation.type_signature
  if _is_state_and_clients(signature):
    return computation
  for federated in _federated_types(signature.result):
    if federated.placement is tff.CLIENTS:
      raise UnsupportedComputationError(
          f'the computation returns a value placed at the clients: {federated}'
      )
  federated = _federated_types(signature.parameter)
  at_clients = [t for t in federated if differs_by_client(t)]
  at_server = [t for t in federated if not differs_by_client(t)]

  @tff.federated_computation(
      _joined_type(at_server, tff.SERVER),
      _joined_type(at_clients, tff.CLIENTS),
  )
  def whole(state, clients):
    states = iter([state] if len(at_server) == 1 else state)
    values_at_clients = iter([clients] if len(at_clients) == 1 else clients)

    def rebuild(type_spec):
      if isinstance(type_spec, tff.StructType):
        return tff.structure.Struct(
            (name, rebuild(field))
            for name, field in tff.structure.iter_elements(type_spec)
        )
      if not isinstance(type_spec, tff.FederatedType):
        raise UnsupportedComputationError(
            f'the computation takes a value without a placement: {type_spec}'
        )
      if differs_by_client(type_spec):
        return next(values_at_clients)
      value = next(states)
      if type_spec.placement is tff.CLIENTS:
        return tff.federated_broadcast(value)
      return value

    argument = rebuild(signature.parameter)
    return state, computation(argument)

  return whole


class ClientValues(list):
  """Several values of each client, side by side.

  Attributes:
    cohort: The cohort among the arguments, which brings the key of random
      numbers; None if there is none.
  """

  def __init__(self, at_clients: Sequence[Sequence[Any]]):
    """Initializes the values, given each of all clients."""
    super().__init__(zip(*at_clients))
    cohorts = (v for v in at_clients if isinstance(v, cohort_lib.Cohort))
    self.cohort = next(cohorts, None)


def check_clients(at_clients: Sequence[Any]) -> None:
  """Checks values at the clients.

  Raises:
    TypeError: If a value is no sequence.
    ValueError: If they differ in length, as on TFF's runtime.
  """
  for value in at_clients:
    if not isinstance(value, Sequence):
      raise TypeError(
          'The value at the clients must be a list with one entry per client '
          f'or a `Cohort`, found {type(value).__name__}.'
      )
  sizes = sorted(set(map(len, at_clients)))
  if len(sizes) > 1:
    raise ValueError(
        'Conflicting cardinalities: the values at the clients must have the '
        f'same number of clients, found {sizes[0]} and {sizes[-1]}.'
    )


def _build_split(
    parameter: tff.Type,
) -> Callable[[Any], tuple[Any, Any]]:
  """Builds a function that splits arguments like `_as_state_and_clients`."""
  flatten = values.build_flatten(parameter, into_members=False)
  differ = list(map(differs_by_client, _federated_types(parameter)))

  def split(argument):
    at_server, at_clients = [], []
    for differs, value in zip(differ, flatten(argument)):
      (at_clients if differs else at_server).append(value)
    check_clients(at_clients)
    state = at_server[0] if len(at_server) == 1 else tuple(at_server)
    if not at_clients:
      return state, None
    if len(at_clients) == 1:
      return state, at_clients[0]
    return state, ClientValues(at_clients)

  return split


def get_round_form(
    computation: tff.framework.ConcreteComputation,
) -> RoundForm:
  """Splits a computation into the parts of a MapReduce round.

  The computation has values at the clients and, optionally, at the server.
  Secure sums become plain sums, as in TFF's test runtime.

  Raises:
    UnsupportedComputationError: If the computation is not a MapReduce round.
  """
  with errors_as_unsupported('the computation is not a MapReduce round'):
    whole = _as_state_and_clients(computation)
    # Read before secure sums are replaced, which loses Python's containers.
    state_type, clients_type = whole.type_signature.parameter
    result_type = whole.type_signature.result
    returns_state = whole is computation
    if uses_secure_sums(whole):
      whole = tff.backends.test.replace_secure_intrinsics_with_bodies(whole)
    form = tff.backends.mapreduce.get_map_reduce_form_for_computation(
        whole, _no_optimization()
    )
  return RoundForm(
      {name: getattr(form, name) for name in ('work', *SERVER_PARTS)},
      _build_split(computation.type_signature.parameter),
      state_type.member,
      clients_type.member,
      result_type,
      returns_state,
  )


@contextlib.contextmanager
def errors_as_unsupported(reason: str) -> Iterator[None]:
  """Turns TFF's many kinds of errors into `UnsupportedComputationError`."""
  try:
    yield
  except UnsupportedComputationError:
    raise
  except Exception as e:
    detail = (str(e).splitlines() or [type(e).__name__])[0]
    # TFF adds the operations at fault, in pages of types.
    detail = detail.partition(' Examples are: ')[0]
    raise UnsupportedComputationError(f'{reason}: {detail}') from e


def get_initialization(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Turns a computation without arguments into pure TensorFlow.

  Raises:
    UnsupportedComputationError: If it does not return one value at the server.
  """
  with errors_as_unsupported(
      'the computation does not return one value at the server'
  ):
    return tff.backends.mapreduce.get_state_initialization_computation(
        computation, _no_optimization()
    )
