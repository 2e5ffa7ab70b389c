# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rules of a leaderboard, and the runs that they require."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import math
import pathlib
from typing import Any, Optional

from experiments import flag_table
from experiments import hparams
from experiments import published
from experiments import registry
from experiments.published import files
from experiments.sweep import scores
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib
from tasks import definitions

_PATH = published.ROOT / 'experiments' / 'presets' / 'leaderboard.yaml'
# The value of --methods for all methods.
ALL = 'all'
_RULES = (
    registry.CLIENT_OPTIMIZER,
    registry.SERVER_OPTIMIZER,
    registry.LOSS_TERM,
)

# The assignment of the library's defaults, and their folder.
DEFAULTS: search_spaces.Assignment = ()
_DEFAULTS_FOLDER = 'defaults'


@dataclasses.dataclass(frozen=True)
class Protocol:
  """The rules for all tasks and methods.

  Attributes:
    total_rounds: The number of rounds of a run.
    rounds_per_evaluation: The number of rounds between evaluations.
    selection_rounds: The number of last rounds whose mean training loss selects
      the best trial.
    num_trials: The number of assignments that a method tries, of which the
      first is the library's defaults.
    search_seed: The seed for sampling assignments.
    tuning_seed: The seed of the trials, different from the final seeds.
    seconds_per_start: The time of a run before its first round.
  """

  total_rounds: int
  rounds_per_evaluation: int
  selection_rounds: int
  num_trials: int
  search_seed: int
  tuning_seed: int
  seconds_per_start: float


@dataclasses.dataclass(frozen=True)
class Task:
  """A task.

  Attributes:
    name: Its name in the registry.
    num_seeds: The number of final seeds, which are 0, 1, ...
    target: The metric to reach, in percent.
    margin: A loss that users would not notice, in percentage points.
    metric: The evaluation metric; higher is better.
    flags: Flags that override the defaults of the task.
    seconds_per_round: The expected time of a round; None if unknown.
  """

  name: str
  num_seeds: int
  target: float
  margin: float
  metric: str = 'accuracy'
  flags: tuple[str, ...] = ()
  seconds_per_round: Optional[float] = None

  @property
  def seeds(self) -> range:
    """The final seeds."""
    return range(self.num_seeds)


# The rules for a user's own task.
OWN_TASK = Task('package.module:VALUE', num_seeds=3, target=80.0, margin=0.5)


@dataclasses.dataclass(frozen=True)
class Range:
  """The range in which a flag is searched.

  Attributes:
    flag: The flag.
    values: A distribution in the format of `--random` of `experiments.sweep`.
    reason: The reason for this range.
  """

  flag: str
  values: str
  reason: str

  @property
  def text(self) -> str:
    """The range in the format of `--random`."""
    return f'{self.flag}={self.values}'


@dataclasses.dataclass(frozen=True)
class Method:
  """A method.

  Attributes:
    name: The name of the method.
    flags: The flags that choose it.
    search: The ranges of its hyperparameters.
    not_on: The names of the tasks on which it cannot run.
  """

  name: str
  flags: tuple[str, ...]
  search: tuple[Range, ...]
  not_on: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Leaderboard:
  """The tasks and methods to compare, and the rules.

  Attributes:
    protocol: The rules.
    tasks: The tasks by name.
    methods: The methods by name.
    default_methods: The names of the methods compared by default.
    excluded: The excluded tasks of the registry, with the reasons.
  """

  protocol: Protocol
  tasks: Mapping[str, Task]
  methods: Mapping[str, Method]
  default_methods: tuple[str, ...]
  excluded: Mapping[str, str]

  def restrict(
      self,
      *,
      tasks: Optional[Sequence[str]] = None,
      methods: Optional[Sequence[str]] = None,
      **numbers: Any,
  ) -> 'Leaderboard':
    """Returns a part of the leaderboard, or one with other numbers.

    Args:
      tasks: The names of the tasks; None for all. Your own tasks are named
        'package.module:VALUE', with the rules of `OWN_TASK`.
      methods: The names of the methods, or 'all'; None for the default ones.
      **numbers: Values by name that override those of `Protocol`, or those of
        `Task` for all tasks, unless None.

    Returns:
      The leaderboard.

    Raises:
      HparamError: If a task or method is unknown, with similar names; if a task
        is excluded, with the reason; if a task of your own has no accuracy.
    """
    own = {n: _own_task(n) for n in tasks or () if registry.is_own_task(n)}
    for name in tasks or ():
      if name in self.excluded:
        raise hparams.HparamError(
            f'--tasks={name} is not on the leaderboard: {self.excluded[name]}'
        )
    names = self.default_methods if methods is None else methods
    if list(names) == [ALL]:
      names = tuple(self.methods)
    given = {name: n for name, n in numbers.items() if n is not None}
    of_tasks = {'num_seeds', 'target', 'margin'} & set(given)
    of_task: dict[str, Any] = {name: given.pop(name) for name in of_tasks}
    chosen = _choose('tasks', {**self.tasks, **own}, tasks or list(self.tasks))
    return dataclasses.replace(
        self,
        protocol=dataclasses.replace(self.protocol, **given),
        tasks={n: dataclasses.replace(t, **of_task) for n, t in chosen.items()},
        methods=_choose('methods', self.methods, names),
    )


def _own_task(name: str) -> Task:
  """Returns a user's own task, which is not in the data file."""
  hparams.load_own_task(name)
  task = registry.ROWS[registry.TASK][name].task
  if not isinstance(task, definitions.ClassificationTask):
    raise hparams.HparamError(
        f'--tasks={name} must be a tasks.definitions.ClassificationTask, as '
        f'accuracies are compared, found {type(task).__name__}'
    )
  return dataclasses.replace(OWN_TASK, name=name)


def _choose(
    flag: str, known: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
  for name in names:
    flag_table.check_name(flag, name, known)
  return {name: known[name] for name in names}


def _read(kind: type, raw: Mapping[str, Any], place: str, **given: Any) -> Any:
  """Builds an object from a mapping, after checking its keys."""
  fields = [f for f in dataclasses.fields(kind) if f.name not in given]
  files.check_keys(
      raw,
      [field.name for field in fields],
      place,
      needed=[f.name for f in fields if f.default is dataclasses.MISSING],
  )
  values = {
      name: tuple(value) if isinstance(value, list) else value
      for name, value in raw.items()
  }
  return kind(**given, **values)


def _rows_of(flags: Sequence[str]) -> dict[str, registry.Row]:
  """Returns the rows of a run with the given flags, by kind."""
  chosen = dict(flag[2:].split('=') for flag in flags)
  names = {**hparams.DEFAULT_ROWS, **chosen}
  algorithm = registry.ROWS[registry.ALGORITHM][names[registry.ALGORITHM]]
  parts = {part.kind: part.name for part in algorithm.parts}
  names = {**hparams.DEFAULT_ROWS, **parts, **chosen}
  return {kind: registry.ROWS[kind][names[kind]] for kind in _RULES}


def _decades(rows: Iterable[registry.Row]) -> dict[str, Range]:
  """Returns the ranges of the arguments of rows, by their flags."""
  return {
      row.flag_name(argument): Range(
          row.flag_name(argument),
          f'log_uniform({argument.default / 10:g},{argument.default * 10:g})',
          f'a decade to each side of the default {argument.default:g}',
      )
      for row in rows
      for argument in row.arguments
      if argument.type is float
      and argument.default
      and math.isfinite(argument.default)
  }


def _read_method(
    name: str, raw: Mapping[str, Any], ranges: Mapping[str, Range]
) -> Method:
  method = _read(Method, raw, f'method {name}', name=name)
  known = {**_decades(_rows_of(method.flags).values()), **ranges}
  for key in method.search:
    files.check_choice(key, list(known), f'method {name}: search')
  for task in method.not_on:
    files.check_choice(
        task, list(registry.ROWS[registry.TASK]), f'method {name}: not_on'
    )
  return dataclasses.replace(
      method, search=tuple(known[key] for key in method.search)
  )


def _other_methods(methods: Iterable[Method]) -> Iterator[Method]:
  """Yields a method for every rule of the registry that no method uses.

  It searches the learning rates, or the first number of a rule that has no
  learning rate.
  """
  described = {
      (kind, row.name)
      for method in methods
      for kind, row in _rows_of(method.flags).items()
  }
  for kind in _RULES:
    for name, row in registry.ROWS[kind].items():
      if (kind, name) in described or row.builder is None:
        continue
      chosen = {registry.CLIENT_OPTIMIZER: 'sgd', kind: name}
      flags = tuple(f'--{kind}={name}' for kind, name in chosen.items())
      known = _decades(_rows_of(flags)[kind] for kind in chosen)
      of_rule = [*_decades([row])]
      rates = [flag for flag in known if flag.endswith('learning_rate')]
      search = rates if set(rates) & set(of_rule) else [*rates, *of_rule[:1]]
      yield Method(name, flags, tuple(known[flag] for flag in search))


def _read_task(name: str, raw: Mapping[str, Any], protocol: Protocol) -> Task:
  files.check_choice(name, list(registry.ROWS[registry.TASK]), 'a task')
  task = _read(Task, raw, f'task {name}', name=name)
  if protocol.tuning_seed in task.seeds:
    raise published.PublishedError(
        f'tuning_seed must not be one of the final seeds, but task {name} has '
        f'{protocol.tuning_seed} among them'
    )
  return task


def load(path: pathlib.Path = _PATH) -> Leaderboard:
  """Returns the leaderboard of a data file.

  Args:
    path: The file. Defaults to `experiments/presets/leaderboard.yaml`.

  Returns:
    The leaderboard, with all tasks and methods.

  Raises:
    PublishedError: If the file is invalid; names the place, what was found and
      what was expected.
  """
  raw = files.load(path)
  rules = [field.name for field in dataclasses.fields(Protocol)]
  parts = ('tasks', 'excluded', 'default_methods', 'ranges', 'methods')
  files.check_keys(raw, [*rules, *parts], path.name, needed=parts)
  protocol = _read(
      Protocol, {k: v for k, v in raw.items() if k in rules}, path.name
  )
  ranges = {
      name: _read(Range, item, f'range {name}')
      for name, item in raw['ranges'].items()
  }
  methods = {
      name: _read_method(name, item, ranges)
      for name, item in raw['methods'].items()
  }
  methods |= {m.name: m for m in _other_methods(tuple(methods.values()))}
  for name in raw['default_methods']:
    files.check_choice(name, list(methods), 'default_methods')
  others = [n for n in registry.ROWS[registry.TASK] if n not in raw['tasks']]
  for name in raw['excluded']:
    files.check_choice(name, others, 'an excluded task')
  tasks = {
      name: _read_task(name, item, protocol)
      for name, item in raw['tasks'].items()
  }
  default_methods = tuple(raw['default_methods'])
  return Leaderboard(protocol, tasks, methods, default_methods, raw['excluded'])


@dataclasses.dataclass(frozen=True)
class Plan:
  """The runs of a leaderboard.

  The folder of a run is
  `<output_dir>/<task>/<method>/<assignment>/seed_<seed>`. Tuning trials and
  final runs differ only in the seed, so that a run can serve two purposes, for
  example if the defaults are the best.

  Attributes:
    board: The tasks, methods and rules.
    output_dir: The folder of all runs.
    data_dir: The folder of the data sets; None if no task needs one.
    given: The flags that override rules of the data file.
  """

  board: Leaderboard
  output_dir: str
  data_dir: Optional[str] = None
  given: tuple[str, ...] = ()

  @property
  def pairs(self) -> list[tuple[str, str]]:
    """The pairs of task and method names, task by task."""
    return [
        (task, name)
        for task in self.board.tasks
        for name, method in self.board.methods.items()
        if task not in method.not_on
    ]

  @property
  def selection(self) -> scores.Selection:
    """The criterion for the best trial, which does not use test data."""
    rounds = self.board.protocol.selection_rounds
    return dataclasses.replace(
        scores.TRAIN_LOSS, name=f'train_loss_last{rounds}', num_rounds=rounds
    )

  def assignments(self, method: str) -> list[search_spaces.Assignment]:
    """Returns the assignments of a method: the defaults, then samples.

    Args:
      method: The name of the method.

    Returns:
      The assignments, which depend only on the method's ranges and the search
      seed.
    """
    protocol = self.board.protocol
    drawn = search_spaces.build_assignments(
        randoms=[item.text for item in self.board.methods[method].search],
        num_trials=protocol.num_trials - 1,
        search_seed=protocol.search_seed,
    )
    return list(dict.fromkeys([DEFAULTS, *drawn]))[: protocol.num_trials]

  def tuning(self, task: str, method: str) -> list[trials_lib.Trial]:
    """Returns the tuning trials, in order."""
    seed = self.board.protocol.tuning_seed
    return [
        self._build(task, method, assignment, seed)
        for assignment in self.assignments(method)
    ]

  def finals(
      self, task: str, method: str, assignment: search_spaces.Assignment
  ) -> list[trials_lib.Trial]:
    """Returns the runs of an assignment with the final seeds."""
    return [
        self._build(task, method, assignment, seed)
        for seed in self.board.tasks[task].seeds
    ]

  def _build(
      self,
      task: str,
      method: str,
      assignment: search_spaces.Assignment,
      seed: int,
  ) -> trials_lib.Trial:
    protocol = self.board.protocol
    slug = trials_lib.to_slug(assignment) or _DEFAULTS_FOLDER
    return _build_trial(
        (
            f'--task={task}',
            *self.board.tasks[task].flags,
            *self.board.methods[method].flags,
            f'--total_rounds={protocol.total_rounds}',
            f'--rounds_per_evaluation={protocol.rounds_per_evaluation}',
            *([] if self.data_dir is None else [f'--data_dir={self.data_dir}']),
            *(f'--{flag}={value}' for flag, value in assignment),
        ),
        seed,
        self.output_dir,
        task,
        f'{method}/{slug}',
    )


# Trials are compared by identity, so each run must have only one.
@functools.lru_cache(maxsize=None)
def _build_trial(
    arguments: tuple[str, ...], seed: int, output_dir: str, home: str, name: str
) -> trials_lib.Trial:
  return trials_lib.build_trial(
      {'run': name},
      arguments,
      seed=seed,
      output_dir=output_dir,
      home=home,
      name=name,
  )


def unite(trials: Iterable[trials_lib.Trial]) -> list[trials_lib.Trial]:
  """Returns trials without duplicates, in order."""
  return list(dict.fromkeys(trials))
