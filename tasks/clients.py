# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Partitions of a central data set among clients, with their arguments."""

from collections.abc import Mapping
from typing import Any, Optional

import attrs
import numpy as np

from tasks.arguments import Argument
from tff_adaptive.data import client_data
from tff_adaptive.data import partition as partition_lib
from tff_adaptive.data import transforms

# These schemes take no sizes, since they divide all examples.
_DIVIDE_ALL = ('dirichlet_per_class', 'shards')
# The schemes that use an argument. The data's own clients use none of these.
_USED_BY = {
    'alpha': {*partition_lib.COARSE_SCHEMES} - {'iid', 'shards'},
    'cap': {'dirichlet_per_class'},
    'examples_per_client': {*partition_lib.COARSE_SCHEMES},
    'fine_alpha': {'pachinko'},
    'min_size': {'dirichlet_per_class'},
    'partition': {*partition_lib.COARSE_SCHEMES},
    'shards_per_client': {'shards'},
}


@attrs.frozen
class Partition:
  """A partition by class; by default every row belongs to one client.

  Turns the arguments of `tff_adaptive.data.partition.by_scheme` into arguments
  of a task.

  Attributes:
    num_clients: The default number of clients. None for data that may come with
      clients, to use all of these.
    alpha: The default concentration of the Dirichlet partitions.
    noun: The plural noun for examples in help texts.
    scheme: The default scheme, a name in `partition.SCHEMES`.
    default_size: The number of examples per client if `examples_per_client` is
      unset and the scheme does not divide all rows by itself, such as '500'.
      None (the default) divides all rows evenly.
  """

  num_clients: Optional[int] = 100
  alpha: float = 0.1
  noun: str = 'images'
  scheme: str = 'dirichlet_without_replacement'
  default_size: Optional[str] = None

  @property
  def arguments(self) -> tuple[Argument, ...]:
    """The arguments of a task with these clients."""
    noun = self.noun
    return (
        Argument(
            'num_clients',
            self.num_clients,
            'The number of clients.',
            minimum=1,
            type=int,
        ),
        Argument(
            'alpha',
            self.alpha,
            'The concentration of the Dirichlet partitions; smaller values '
            "make the clients' labels less alike.",
            minimum=0.0,
        ),
        Argument(
            'partition',
            self.scheme,
            f'The partition of the training {noun}.',
            choices=partition_lib.SCHEMES,
        ),
        Argument(
            'examples_per_client',
            None,
            f'{noun.capitalize()} per client: a number such as 500, or a range '
            'to sample from such as 100-500; unset: '
            f'{self.default_size or "an even share"}, or all if the partition '
            'divides all.',
            type=str,
        ),
        Argument(
            'shards_per_client',
            2,
            'For shards: the number of shards per client.',
            minimum=1,
        ),
        Argument(
            'min_size',
            1,
            f'For dirichlet_per_class: the minimum number of {noun} per '
            'client.',
            minimum=0,
        ),
        Argument(
            'cap',
            False,
            'For dirichlet_per_class: whether a client with an even share of '
            f'the {noun} gets nothing of further classes.',
        ),
    )

  def split(
      self, examples: Mapping[str, np.ndarray], args: Any, seed: int
  ) -> client_data.PackedClientArrays:
    """Splits examples among clients, which share the arrays.

    Args:
      examples: Feature names and arrays of shape [num_examples, ...], including
        the classes 'y'.
      args: The arguments of the task.
      seed: The seed of the partition, a non-negative integer.

    Returns:
      The clients. No examples are copied: `values` are `examples`.

    Raises:
      TypeError: If a number is not an integer.
      ValueError: If an argument is out of range, or has no effect.
    """
    return self._split(
        examples,
        args,
        seed,
        args.partition,
        args.num_clients,
        self.default_size,
    )

  def choose(
      self, clients: client_data.ClientArrays, args: Any, seed: int
  ) -> client_data.ClientArrays:
    """Samples `num_clients` of the data's own clients."""
    self._check_used(args, None)
    if self.num_clients is not None:
      raise ValueError(
          f'The data come with {len(clients.client_ids)} clients, of which a '
          f'partition of {self.num_clients} would use only a sample: leave out '
          '`clients` of the task.'
      )
    if args.num_clients is None:
      return clients
    chosen = transforms.sample_client_ids(
        clients.client_ids, args.num_clients, seed
    )
    return transforms.select_clients(clients, chosen)

  def _check_used(self, args: Any, scheme: Optional[str]) -> None:
    """Raises a ValueError if an argument that has no effect is set."""
    where = f'the partition {scheme!r}' if scheme else "the data's own clients"
    for argument in self.arguments:
      name, value = argument.name, getattr(args, argument.name)
      is_used = name not in _USED_BY or scheme in _USED_BY[name]
      if not is_used and value not in (argument.default, ''):
        raise ValueError(
            f'`{name}` must be {argument.default!r} for {where}, found '
            f'{value!r}: it has no effect there.'
        )

  def _check_enough(
      self, num_clients: int, examples: Mapping[str, np.ndarray]
  ) -> None:
    """Raises a ValueError unless every client can get an example."""
    if num_clients > len(examples['y']):
      raise ValueError(
          f'`num_clients` must be at most {len(examples["y"])}, the number of '
          f'training {self.noun}, found {num_clients}.'
      )

  def _split(
      self,
      examples: Mapping[str, np.ndarray],
      args: Any,
      seed: int,
      scheme: str,
      num_clients: int,
      default_size: Optional[str],
      **options: Any,
  ) -> client_data.PackedClientArrays:
    self._check_used(args, scheme)
    size = args.examples_per_client or None  # Empty: not set.
    if size is None and scheme not in _DIVIDE_ALL:
      size = default_size
      if size is None:
        self._check_enough(num_clients, examples)
    _check_classes(examples['y'], scheme)
    rows = partition_lib.by_scheme(
        scheme,
        examples['y'],
        num_clients,
        seed,
        alpha=args.alpha,
        examples_per_client=size,
        shards_per_client=args.shards_per_client,
        min_size=args.min_size,
        cap=args.cap,
        **options,
    )
    return client_data.PackedClientArrays.from_partition(examples, rows)


def _check_classes(labels: np.ndarray, scheme: str) -> None:
  """Raises a ValueError if a scheme needs classes, and these are none."""
  is_class = labels.ndim == 1 and np.issubdtype(labels.dtype, np.integer)
  if scheme != 'iid' and not is_class:
    raise ValueError(
        f"The partition {scheme!r} divides examples by their classes 'y', "
        f'integers of shape [], found {labels.dtype} of shape '
        f"{list(labels.shape[1:])}; set `partition` to 'iid', as "
        "`Partition(scheme='iid')` does by default."
    )


def delta_sgd_clients(
    num_clients: int, alpha: float, noun: str = 'images'
) -> Partition:
  """Returns the clients of the Delta-SGD experiments, which share examples.

  Each of them samples 500 examples with replacement from the whole data set, as
  the authors' code does, so that examples occur several times in a client and
  in several clients.

  Args:
    num_clients: The default number of clients.
    alpha: The default concentration.
    noun: The plural noun for examples in help texts.

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, and its published code.
  """
  return Partition(
      num_clients, alpha, noun, 'dirichlet_with_replacement', '500'
  )


@attrs.frozen
class PachinkoPartition(Partition):
  """The clients of a TFF file, or else of a Pachinko allocation.

  Attributes:
    num_clients: The default number of clients; None for all of TFF's, or 500.
    coarse_classes: The coarse class of each class.
  """

  num_clients: Optional[int] = attrs.field(default=None, kw_only=True)
  coarse_classes: tuple[int, ...] = attrs.field(default=(), kw_only=True)
  scheme: str = attrs.field(default='tff', kw_only=True)

  @property
  def arguments(self) -> tuple[Argument, ...]:
    """The arguments of a task with these clients."""
    own = (
        Argument(
            'num_clients',
            self.num_clients,
            "The number of clients; unset: all of TFF's, or 500.",
            type=int,
            minimum=1,
        ),
        Argument(
            'fine_alpha',
            10.0,
            'For pachinko: the concentration of the classes within a coarse '
            'class.',
            minimum=0.0,
        ),
        Argument(
            'partition',
            self.scheme,
            "The partition of the training images; tff: TFF's clients, or "
            'pachinko if their file is missing.',
            choices=('tff', *partition_lib.COARSE_SCHEMES),
        ),
        Argument(
            'examples_per_client',
            None,
            'Images per client: a number such as 500, or a range to sample '
            'from such as 100-500; unset: 100 for pachinko, all if the '
            'partition divides all, else 500.',
            type=str,
        ),
    )
    names = {argument.name for argument in own}
    others = super().arguments
    return (*own, *(other for other in others if other.name not in names))

  def split(
      self, examples: Mapping[str, np.ndarray], args: Any, seed: int
  ) -> client_data.PackedClientArrays:
    """Splits examples among clients; see `Partition.split`."""
    scheme = 'pachinko' if args.partition == 'tff' else args.partition
    return self._split(
        examples,
        args,
        seed,
        scheme,
        args.num_clients or 500,
        default_size='100' if scheme == 'pachinko' else '500',
        coarse_labels=np.asarray(self.coarse_classes)[examples['y']],
        fine_alpha=args.fine_alpha,
    )


@attrs.frozen
class DirichletClients(Partition):
  """Divides all examples, with Dirichlet distributed classes per client."""

  scheme: str = attrs.field(default='', init=False)

  @property
  def arguments(self) -> tuple[Argument, ...]:
    """The arguments of a task with these clients."""
    return (
        Argument(
            'num_clients',
            self.num_clients,
            f'The number of clients that share the training {self.noun}.',
            minimum=1,
        ),
        Argument(
            'alpha',
            self.alpha,
            'The concentration of the Dirichlet distribution; smaller values '
            "make the clients' labels less alike, inf is i.i.d.",
            minimum=0.0,
            may_be_infinite=True,
        ),
    )

  def split(
      self, examples: Mapping[str, np.ndarray], args: Any, seed: int
  ) -> client_data.PackedClientArrays:
    """Splits examples among clients; see `Partition.split`."""
    labels, num_clients = examples['y'], args.num_clients
    self._check_enough(num_clients, examples)
    if np.isposinf(args.alpha):
      rows = partition_lib.iid(len(labels), num_clients, seed)
    else:
      rows = partition_lib.dirichlet_per_client(
          labels, num_clients, args.alpha, seed
      )
    return client_data.PackedClientArrays.from_partition(examples, rows)
