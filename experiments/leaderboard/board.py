# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rules of a leaderboard: what is compared, and how."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import datetime
import math
import pathlib
from typing import Any, Optional

import attrs

from experiments import flag_table
from experiments import hparams
from experiments import published
from experiments import registry
from experiments import yaml_files
from tasks import catalogue
from tasks import definitions
from tff_adaptive import _metric_modes

_PATH = published.ROOT / 'experiments' / 'presets' / 'leaderboard.yaml'
# What stands for all methods or tasks in a list of them, and for the defaults.
ALL = 'all'
DEFAULT = 'default'
# The sources of a method's defaults; 'other' is another method's paper or code.
OURS = 'ours'
_SOURCES = ('paper', 'code', 'other', OURS)
_AT_LEAST_ONE = attrs.validators.ge(1)


@attrs.frozen
class Protocol:
  """The rules for all tasks and methods.

  Attributes:
    total_rounds: The rounds of a run.
    rounds_per_evaluation: The rounds between two evaluations.
    selection_rounds: The number of last rounds whose mean training loss selects
      the best trial.
    budgets: The numbers of trials that are compared, ascending. The first trial
      is the library's defaults.
    search_seed: The seed of the random samples.
    tuning_seed: The seed of the trials; none of the final seeds.
    seconds_per_start: The time of a run before its first round.
  """

  total_rounds: int = attrs.field(validator=_AT_LEAST_ONE)
  rounds_per_evaluation: int = attrs.field(validator=_AT_LEAST_ONE)
  selection_rounds: int = attrs.field(validator=_AT_LEAST_ONE)
  budgets: tuple[int, ...] = attrs.field(validator=attrs.validators.min_len(1))
  search_seed: int
  tuning_seed: int
  seconds_per_start: float

  @property
  def num_trials(self) -> int:
    """The largest number of assignments that a method tries."""
    return self.budgets[-1]

  def with_trials(self, num_trials: int) -> 'Protocol':
    """Returns the rules with another number of trials."""
    smaller = (budget for budget in self.budgets if budget < num_trials)
    return attrs.evolve(self, budgets=(*smaller, num_trials))


@attrs.frozen
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
    note: A remark on the data for readers of the results.
  """

  name: str
  num_seeds: int = attrs.field(validator=_AT_LEAST_ONE)
  target: float
  margin: float
  metric: str = 'accuracy'
  flags: tuple[str, ...] = ()
  seconds_per_round: Optional[float] = None
  note: str = ''

  @property
  def seeds(self) -> range:
    """The final seeds."""
    return range(self.num_seeds)


# The rules for a classification task that the data file does not list.
OWN_TASK = Task('package.module:VALUE', num_seeds=3, target=80.0, margin=0.5)


@attrs.frozen
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


@attrs.frozen
class Method:
  """A method.

  Attributes:
    name: The name of the method.
    flags: The flags that choose it.
    search: The ranges of its hyperparameters.
    tuning_free: Whether its authors say that it needs no tuning.
    defaults: The source of its defaults, one of 'paper', 'code', 'other' and
      'ours'.
    not_on: The names of the tasks on which it cannot run.
    place: The place of a user's own rule, by which it is given.
  """

  name: str
  flags: tuple[str, ...]
  search: tuple[Range, ...]
  tuning_free: bool = False
  defaults: str = attrs.field(
      default=OURS, validator=attrs.validators.in_(_SOURCES)
  )
  not_on: tuple[str, ...] = ()
  place: Optional[str] = None


@attrs.frozen
class Registration:
  """The methods and tasks whose present rules were committed at a time.

  Attributes:
    commit: The commit.
    time: Its time, with the time zone.
    entries: The names of the methods and tasks.
  """

  commit: str
  time: datetime.datetime
  entries: tuple[str, ...]


@attrs.frozen
class Leaderboard:
  """The tasks and methods to compare, and the rules.

  Attributes:
    protocol: The rules.
    tasks: The tasks by name.
    methods: The methods by name.
    default_tasks: The names of the tasks that are compared by default.
    default_methods: The names of the methods that are compared by default.
    excluded: The tasks of the registry that are not compared, with the reason.
    registered: When the rules of methods and tasks were committed.
  """

  protocol: Protocol
  tasks: Mapping[str, Task]
  methods: Mapping[str, Method]
  default_tasks: tuple[str, ...]
  default_methods: tuple[str, ...]
  excluded: Mapping[str, str]
  registered: tuple[Registration, ...] = ()

  def __attrs_post_init__(self):
    """Raises a PublishedError if a final seed or a metric is not valid."""
    tuning_seed = self.protocol.tuning_seed
    for name, task in self.tasks.items():
      if tuning_seed in task.seeds:
        raise published.PublishedError(
            'tuning_seed must not be one of the final seeds, but task '
            f'{name} has {tuning_seed} among them; take fewer seeds'
        )
      if _metric_modes.find_mode(task.metric) != _metric_modes.MAX:
        raise published.PublishedError(
            f'the metric of task {name} must be one whose larger values are '
            f'better, found {task.metric!r}, whose name does not say so'
        )

  def find_registration(self, task: str, method: str) -> Optional[Registration]:
    """Returns the later registration of a task and a method; None without one.

    Args:
      task: The name of the task.
      method: The name of the method.
    """
    by_name = {name: r for r in self.registered for name in r.entries}
    if task not in by_name or method not in by_name:
      return None
    return max(by_name[task], by_name[method], key=lambda found: found.time)

  def restrict(
      self,
      *,
      tasks: Optional[Sequence[str]] = None,
      methods: Optional[Sequence[str]] = None,
      num_trials: Optional[int] = None,
      **numbers: Any,
  ) -> 'Leaderboard':
    """Returns a part of the leaderboard, or one with other numbers.

    Args:
      tasks: The names of the tasks, among which 'all' and 'default' stand for
        several; None for the default ones. Those of a user's own are
        'package.module:VALUE', with the rules of `OWN_TASK`.
      methods: The names of the methods, likewise. Rules of a user's own are
        'package.module:build_NAME'.
      num_trials: The largest budget; None for that of the rules.
      **numbers: Other values of `Protocol`, and of `Task` for all tasks, by
        their names; None leaves them as they are.

    Returns:
      The leaderboard.

    Raises:
      HparamError: If a task or method is unknown, with similar names; if two
        methods have one name; if a task is excluded, with the reason; if a task
        of your own has no accuracy.
      PublishedError: If a final seed is that of the trials.
    """
    own_tasks = {n: _own_task(n) for n in tasks or () if registry.is_own(n)}
    own_methods = {
        n: create_method(registry.kind_of_own(n), n)
        for n in methods or ()
        if registry.is_own(n)
    }
    known_methods = {**self.methods, **own_methods}
    _check_names(known_methods)
    for name in map(to_key, tasks or ()):
      if name in self.excluded:
        raise hparams.HparamError(
            f'--tasks={name} is not on the leaderboard: {self.excluded[name]}'
        )
    given = {name: n for name, n in numbers.items() if n is not None}
    of_tasks = {'num_seeds', 'target', 'margin'} & set(given)
    of_task: dict[str, Any] = {name: given.pop(name) for name in of_tasks}
    rules = attrs.evolve(self.protocol, **given)
    chosen = _choose(
        'tasks', {**self.tasks, **own_tasks}, self.default_tasks, tasks
    )
    compared = _choose('methods', known_methods, self.default_methods, methods)
    return attrs.evolve(
        self,
        protocol=rules.with_trials(num_trials or rules.num_trials),
        tasks={n: attrs.evolve(t, **of_task) for n, t in chosen.items()},
        methods={method.name: method for method in compared.values()},
    )


def _check_names(methods: Mapping[str, Method]):
  """Raises if two methods have one name, which names runs and rows."""
  found: dict[str, Method] = {}
  for place, method in methods.items():
    other = found.setdefault(to_key(method.name), method)
    if other != method:
      raise hparams.HparamError(
          f'--methods={place} has the name of another method, {other.name}; '
          f'give it another `name` in its {registry.SUBMISSION}'
      )


def _own_task(name: str) -> Task:
  """Returns a user's own task, which is not in the data file."""
  hparams.load_own(registry.TASK, name)
  task = registry.ROWS[registry.TASK][name].task
  if not isinstance(task, definitions.ClassificationTask):
    raise hparams.HparamError(
        f'--tasks={name} must be a tasks.definitions.ClassificationTask, as '
        f'accuracies are compared, found {type(task).__name__}'
    )
  return attrs.evolve(OWN_TASK, name=name)


def _choose(
    flag: str,
    known: Mapping[str, Any],
    defaults: Sequence[str],
    names: Optional[Sequence[str]],
) -> dict[str, Any]:
  """Returns the entries that a flag names, by default the known defaults."""
  names = [DEFAULT] if names is None else names
  if not names:
    raise hparams.HparamError(
        f'--{flag} is empty; give names, or {ALL}: {", ".join(known)}'
    )
  of_keys = {to_key(name): [name] for name in known}
  of_keys[ALL] = list(known)
  of_keys[DEFAULT] = [name for name in defaults if name in known]
  chosen = [one for name in names for one in of_keys.get(to_key(name), [name])]
  for name in chosen:
    flag_table.check_name(flag, name, known)
  return {name: known[name] for name in chosen}


def to_key(name: str) -> str:
  """Returns what is compared of a name: 'delta_sgd' for 'Delta-SGD'."""
  return name.strip().lower().replace('-', '_')


def _rows_of(flags: Sequence[str]) -> dict[str, registry.Row]:
  """Returns the rows of a run with the given flags, by kind."""
  names = hparams.complete_rows(dict(flag[2:].split('=') for flag in flags))
  return {kind: registry.ROWS[kind][names[kind]] for kind in registry.RULES}


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


def create_method(kind: str, name: str) -> Method:
  """Returns the method that has a rule, with SGD on the clients.

  It searches the learning rates, or the first number of a rule that has no
  learning rate, unless the module of a user's own rule has a `SUBMISSION`: a
  dictionary with other values of `Method`, of which `flags` are added.

  Args:
    kind: The kind of the rule.
    name: Its name, or the place of one of the user's own.

  Raises:
    HparamError: If the user's own rule cannot be loaded, or its `SUBMISSION` is
      invalid.
  """
  hparams.load_own(kind, name)
  row = registry.ROWS[kind][name]
  chosen = {registry.CLIENT_OPTIMIZER: 'sgd', kind: name}
  flags = tuple(f'--{kind}={name}' for kind, name in chosen.items())
  known = _decades(_rows_of(flags)[kind] for kind in chosen)
  of_rule = [*_decades([row])]
  rates = [flag for flag in known if flag.endswith('learning_rate')]
  search = rates if set(rates) & set(of_rule) else [*rates, *of_rule[:1]]
  ranges = tuple(known[flag] for flag in search)
  if not registry.is_own(name):
    return Method(row.label, flags, ranges)
  given = registry.find_submission(name)
  place = f'{registry.SUBMISSION} of {name}'
  raw = {'name': row.label, 'flags': [], 'search': [], **given}
  try:
    found = yaml_files.structure(raw, Method, place)
  except yaml_files.DataFileError as error:
    raise hparams.HparamError(str(error)) from error
  return attrs.evolve(
      found,
      flags=(*flags, *found.flags),
      search=found.search if 'search' in given else ranges,
      place=name,
  )


def _other_methods(methods: Iterable[Method]) -> Iterator[Method]:
  """Yields a method for every rule of the registry that no method uses."""
  described = {
      (kind, row.name)
      for method in methods
      for kind, row in _rows_of(method.flags).items()
  }
  for kind in registry.RULES:
    for name, row in registry.ROWS[kind].items():
      if (kind, name) in described or row.builder is None:
        continue
      yield create_method(kind, name)


@attrs.frozen
class _MethodEntry:
  """A method in the file, with its ranges by their names or flags."""

  name: str
  flags: tuple[str, ...]
  search: tuple[str, ...]
  tuning_free: bool = False
  defaults: str = attrs.field(
      default=OURS, validator=attrs.validators.in_(_SOURCES)
  )
  not_on: tuple[str, ...] = ()

  def to_method(self, ranges: Mapping[str, Range]) -> Method:
    """Returns the method, with those of the ranges that it searches."""
    known = {**_decades(_rows_of(self.flags).values()), **ranges}
    for key in self.search:
      yaml_files.check_choice(key, known, f'method {self.name}: search')
    search = tuple(known[key] for key in self.search)
    return Method(**{**attrs.asdict(self, recurse=False), 'search': search})


@attrs.frozen(kw_only=True)
class _File(Protocol):
  """The data file."""

  tasks: Mapping[str, Task]
  excluded: Mapping[str, str]
  ranges: Mapping[str, Range]
  methods: Mapping[str, _MethodEntry]
  default_tasks: tuple[str, ...]
  default_methods: tuple[str, ...]
  registered: tuple[Registration, ...] = ()


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
  raw = yaml_files.parse(path.read_text(encoding='utf-8'), path.name)
  found = yaml_files.structure(raw, _File, path.name)
  methods = {n: m.to_method(found.ranges) for n, m in found.methods.items()}
  methods |= {m.name: m for m in _other_methods(tuple(methods.values()))}
  tasks = dict(found.tasks)
  for name, task in catalogue.TASKS.items():
    if isinstance(task, definitions.ClassificationTask):
      if name not in (*tasks, *found.excluded):
        tasks[name] = attrs.evolve(OWN_TASK, name=name)
  known_tasks = registry.ROWS[registry.TASK]
  for place, names, known in (
      ('tasks', found.tasks, known_tasks),
      ('excluded', found.excluded, known_tasks.keys() - found.tasks),
      ('default_tasks', found.default_tasks, tasks),
      ('default_methods', found.default_methods, methods),
      *(
          (f'methods[{name!r}].not_on', method.not_on, known_tasks)
          for name, method in methods.items()
      ),
      *(
          ('registered', r.entries, {**tasks, **methods})
          for r in found.registered
      ),
  ):
    for name in names:
      yaml_files.check_choice(name, known, f'{path.name}.{place}')
  rules = (field.name for field in attrs.fields(Protocol))
  return Leaderboard(
      Protocol(**{name: getattr(found, name) for name in rules}),
      tasks,
      methods,
      found.default_tasks,
      found.default_methods,
      found.excluded,
      found.registered,
  )
