# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run's evaluations: functions of the weights, and files of their results."""

import collections
from collections.abc import Callable, Iterator, Mapping
import functools
import json
import math
import pathlib
from typing import Any, Optional

import attrs
import numpy as np

from experiments import hparams
from experiments import registry
from experiments import settings as settings_lib
from experiments.train import run_parts
from tff_adaptive import _files
from tff_adaptive import _metric_modes
from tff_adaptive import client_works
from tff_adaptive import evaluation
from tff_adaptive import runtime
from tff_adaptive.analysis import client_plots
from tff_adaptive.data import checks
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sampling
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import task as task_lib

_CENTRAL = settings_lib.CENTRAL
_PER_CLIENT = settings_lib.PER_CLIENT
_PERSONALIZED = settings_lib.PERSONALIZED
# Larger test sets are sampled during training: Stack Overflow's, as in FedOpt,
# but not EMNIST's.
_MAX_WHOLE_EXAMPLES = 100_000
_SAMPLED_EXAMPLES = 10_000
# The columns of the table: keys of a summary and their headings.
_COLUMNS = {
    'mean': 'mean',
    'weighted_mean': 'by examples',
    'median': 'median',
    'worst_decile': 'worst 10 %',
}

_Choices = Mapping[str, hparams.Choice]
_Evaluate = Callable[[Any], Any]


@attrs.frozen(eq=False)
class Evaluations:
  """The evaluations of a run, as functions of the global weights.

  Attributes:
    during_training: Returns metrics by name; its second argument, `round_num`,
      is the number of finished rounds, on which samples may depend.
    test: Returns the metrics on all test examples together.
    includes_test: Whether `during_training` includes the metrics of `test`.
    final: The evaluations after training by name: `central` returns metrics by
      the name of the data, `per_client` a `ClientMetrics`, `personalized` a
      `PersonalizedMetrics`.
  """

  during_training: Callable[..., Mapping[str, float]]
  test: Callable[[Any], Mapping[str, float]]
  includes_test: bool
  final: Mapping[str, _Evaluate]


def build_evaluations(
    choices: _Choices, settings: hparams.Settings, task: task_lib.Task
) -> Evaluations:
  """Builds the evaluations of a run.

  Args:
    choices: The chosen rows, with the device of the run.
    settings: The other flags.
    task: The task.

  Returns:
    The evaluations; all their random samples have been drawn.

  Raises:
    ValueError: If the task lacks the data for an evaluation, the client
      optimizer cannot train a client separately, or the name of a metric does
      not tell which clients are the worst.
  """
  model = task.model
  build_central = functools.partial(
      evaluation.build_central_evaluation, model, devices=_device(choices)
  )
  test = build_central(task.central_test)
  try:
    by_clients = _build_by_clients(choices, settings, task)
  except _metric_modes.UnknownModeError as error:
    raise ValueError(
        f'the name of the metric {error.metric!r} does not tell which clients '
        f'are the worst; give --metric_modes={error.metric}:max if larger '
        f'values are better, or --metric_modes={error.metric}:min'
    ) from error

  in_training: dict[str, Callable[..., Any]] = dict(by_clients)
  final = dict(by_clients)
  # A flag that needs the central evaluation.
  samples_anew = settings.evaluation_data == settings_lib.TEST_CLIENTS
  if _CENTRAL in settings.evaluations:
    if samples_anew:
      in_training[_CENTRAL] = evaluation.build_sampled_evaluation(
          model, _build_test_sampling(task, settings), devices=_device(choices)
      )
    else:
      examples = _examples_during_training(task, settings)
      is_test = examples is task.central_test
      in_training[_CENTRAL] = test if is_test else build_central(examples)
  if _CENTRAL in settings.final_evaluations:
    final[_CENTRAL] = _build_final_central(test, build_central, task)

  def during_training(weights, round_num=0):
    functions = {name: in_training[name] for name in settings.evaluations}
    if samples_anew:
      functions[_CENTRAL] = functools.partial(
          functions[_CENTRAL], round_num=round_num
      )
    return _evaluate_all(functions, weights)

  return Evaluations(
      during_training=during_training,
      test=test,
      includes_test=in_training.get(_CENTRAL) is test,
      final={name: final[name] for name in settings.final_evaluations},
  )


def _evaluate_all(
    functions: Mapping[str, _Evaluate], weights: Any
) -> Mapping[str, float]:
  """Returns all metrics; those of clients have prefixes."""
  found: collections.OrderedDict[str, float] = collections.OrderedDict()
  for name, evaluate in functions.items():
    value = evaluate(weights)
    if name == _CENTRAL:
      found.update(value)
    elif name == _PER_CLIENT:
      found.update(value.summarize('clients/'))
    else:
      found.update(value.before.summarize('personalized/before/'))
      found.update(value.after.summarize('personalized/after/'))
  return found


def _build_test_sampling(
    task: task_lib.Task, settings: hparams.Settings
) -> Callable[[int], feature_arrays.Examples]:
  """Builds the function from a round to the examples of its evaluation."""
  name, test_clients = settings_lib.TEST_CLIENTS, task.test_data
  if test_clients is None:
    raise ValueError(
        f'--evaluation_data={name} needs clients with their own test '
        f'examples, but --task={task.name} has none; set --evaluation_data to '
        f'{settings_lib.TEST} or {settings_lib.TRAIN}'
    )
  size = settings.evaluation_examples or _SAMPLED_EXAMPLES
  return lambda round_num: sampling.sample_examples_evenly(
      test_clients, size, settings.seed, name, round_num
  )


def _examples_during_training(
    task: task_lib.Task, settings: hparams.Settings
) -> feature_arrays.Examples:
  """Returns the examples of the central evaluation during training."""
  name, size = settings.evaluation_data, settings.evaluation_examples
  if name == settings_lib.TRAIN:
    augmentation = task.augmentation
    if augmentation is not None and augmentation.evaluation_fn is None:
      raise ValueError(
          f'--evaluation_data={name} needs training examples as they are, but '
          f'--task={task.name} augments them during training; evaluate on '
          f'{settings_lib.TEST}'
      )
    examples = sampling.sample_client_examples(
        task.train_data, size or _SAMPLED_EXAMPLES, settings.seed
    )
    # Clients that training rejects may be among them.
    checks.check_central_examples(examples, name=f'--evaluation_data={name}')
    return augmentation.for_evaluation(examples) if augmentation else examples
  examples = task.central_test
  if name == settings_lib.VALIDATION:
    if task.validation is None:
      raise ValueError(
          f'--evaluation_data={name} needs validation data, but '
          f'--task={task.name} has none; set --validation_fraction=0.1 to hold '
          "out a tenth of every client's training examples"
      )
    examples = task.validation
  if size is None:
    num_examples = len(next(iter(examples.values())))
    if num_examples <= _MAX_WHOLE_EXAMPLES:
      return examples
    size = _SAMPLED_EXAMPLES
    print(
        f'Evaluations during training use {size:,} of {num_examples:,} '
        'examples (--evaluation_examples).'
    )
  return sampling.sample_examples(examples, size, settings.seed)


def _build_final_central(
    test: _Evaluate,
    build_central: Callable[[Any], _Evaluate],
    task: task_lib.Task,
) -> _Evaluate:
  """Builds the evaluation on all central test and validation data."""
  functions = {settings_lib.TEST: test}
  if task.validation is not None:
    functions[settings_lib.VALIDATION] = build_central(task.validation)
  return lambda weights: {
      name: evaluate(weights) for name, evaluate in functions.items()
  }


def _build_by_clients(
    choices: _Choices, settings: hparams.Settings, task: task_lib.Task
) -> dict[str, _Evaluate]:
  """Builds the client evaluations that the flags name, by name."""
  used = {*settings.evaluations, *settings.final_evaluations} - {_CENTRAL}
  if not used:
    return {}
  test_clients = task.test_data
  if test_clients is None:
    raise ValueError(
        f'--evaluations={" or ".join(sorted(used))} needs clients with their '
        f'own test examples, but --task={task.name} has none; set '
        "--heldout_fraction=0.2 to hold out a fifth of every client's examples"
    )
  functions: dict[str, _Evaluate] = {}
  if _PER_CLIENT in used:
    functions[_PER_CLIENT] = evaluation.build_client_evaluation(
        task.model,
        test_clients,
        **_common_arguments(choices, settings, len(test_clients.client_ids)),
    )
  if _PERSONALIZED in used:
    functions[_PERSONALIZED] = _build_personalized(
        choices, settings, task, test_clients
    )
  return functions


def _device(choices: _Choices) -> str:
  """Returns the device of evaluations, which is that of the clients' work."""
  choice = choices[registry.RUNTIME]
  # TFF's own runtime has no choice of device, and no GPU.
  devices = choice.hparams().get('devices', 'CPU:0')
  # The GPUs of Ray are those of its workers.
  is_remote = choice.row.name == registry.RAY and devices[:3] != 'CPU'
  return runtime.AUTO if is_remote else devices


def _common_arguments(
    choices: _Choices, settings: hparams.Settings, num_clients: int
) -> dict[str, Any]:
  """Returns the common arguments of both client evaluations."""
  most: Optional[int] = settings.evaluation_clients
  return {
      'num_clients': None if most is None else min(most, num_clients),
      'seed': settings.seed,
      'devices': _device(choices),
      'modes': settings.metric_modes,
  }


def _build_personalized(
    choices: _Choices,
    settings: hparams.Settings,
    task: task_lib.Task,
    test_clients: client_data.ClientArrays,
) -> _Evaluate:
  """Builds the personalized evaluation, which trains clients as in a round."""
  trained = set(task.train_data.client_ids)
  in_both = trained.intersection(test_clients.client_ids)
  if not in_both:
    raise ValueError(
        f'--evaluations={_PERSONALIZED} needs clients with both training and '
        'test examples, but no client has both; set --heldout_fraction=0.2 to '
        "hold out a fifth of every client's examples"
    )
  optimizer = run_parts.build_client_optimizer(choices, task)
  if isinstance(optimizer, federated_optimizer.FederatedOptimizer):
    raise ValueError(
        f'{_PERSONALIZED} evaluations train every client separately, but '
        f'--{registry.CLIENT_OPTIMIZER}='
        f'{choices[registry.CLIENT_OPTIMIZER].row.name} has state that '
        'crosses rounds'
    )
  algorithm = choices[registry.ALGORITHM].hparams()
  protocol = task.protocol
  return evaluation.build_personalized_evaluation(
      task.model,
      task.train_data,
      test_clients,
      optimizer,
      num_epochs=settings.personalization_epochs
      or settings_lib.DEFAULTS['personalization_epochs'],
      batch_size=protocol.client_batch_size,
      max_examples=protocol.max_examples,
      gradient_options=client_works.GradientOptions(
          algorithm['client_clip_norm'], algorithm['client_weight_decay']
      ),
      augmentation=task.augmentation,
      **_common_arguments(choices, settings, len(in_both)),
  )


def write_results(
    found: Mapping[str, Any],
    round_num: int,
    directory: run_directory.RunDirectory,
    title: str,
):
  """Writes `evaluation.json`, plots client histograms, and prints a table.

  Args:
    found: The results of `Evaluations.final` by name.
    round_num: The round whose weights were evaluated.
    directory: The folder of the run.
    title: The title of the pictures.

  Raises:
    OSError: If a file cannot be written; names the file.
  """
  path = directory.path / 'evaluation.json'
  content = {'round_num': round_num, **_to_json(found)}
  _files.write(path, json.dumps(content, indent=2, allow_nan=False) + '\n')
  pictures = list(_draw(found, directory, title))
  for line in _to_table(found):
    print(line)
  print(f'evaluation: {path}')
  for picture in pictures:
    print(f'clients: {picture}')


def _to_json(value: Any) -> Any:
  """Returns a result as JSON; non-finite numbers become null."""
  if isinstance(value, evaluation.ClientMetrics):
    rows = zip(value.num_examples.tolist(), *value.values.values())
    return {
        'num_clients': len(value.client_ids),
        'summary': _to_json(value.summarize()),
        'clients': {
            client_id: _to_json(dict(zip(('num_examples', *value.values), row)))
            for client_id, row in zip(value.client_ids, rows)
        },
    }
  if isinstance(value, evaluation.PersonalizedMetrics):
    return _to_json(value._asdict())
  if isinstance(value, Mapping):
    return {name: _to_json(part) for name, part in value.items()}
  if isinstance(value, int):
    return value
  return float(value) if math.isfinite(value) else None


def _draw(
    found: Mapping[str, Any], directory: run_directory.RunDirectory, title: str
) -> Iterator[pathlib.Path]:
  """Plots a histogram of every metric; yields the paths."""
  kinds: list[tuple[str, Any, Any, str]] = []
  if _PER_CLIENT in found:
    kinds.append(('clients', None, found[_PER_CLIENT], title))
  if _PERSONALIZED in found:
    before, after = found[_PERSONALIZED]
    kinds.append(('personalized', before, after, f'{title}, fine-tuned'))
  for kind, before, metrics, caption in kinds:
    for name, values in metrics.values.items():
      # The model may have diverged, or the metric may be undefined.
      if np.isfinite(values).any() and (
          before is None or np.isfinite(before.values[name]).any()
      ):
        picture = directory.plots / f'{kind}_{name}.png'
        client_plots.plot_client_histogram(
            metrics, name, picture, caption, before=before
        )
        yield picture


def _to_table(found: Mapping[str, Any]) -> Iterator[str]:
  """Yields the lines of the table, if any."""
  for data, metrics in found.get(_CENTRAL, {}).items():
    numbers = ', '.join(f'{name} {v:.4g}' for name, v in metrics.items())
    yield f'central, {data}: {numbers}'
  by_clients = {}
  if _PER_CLIENT in found:
    by_clients['per client'] = found[_PER_CLIENT]
  if _PERSONALIZED in found:
    before, after = found[_PERSONALIZED]
    by_clients['before fine-tuning'] = before
    by_clients['after fine-tuning'] = after
  if not by_clients:
    return
  headings = ''.join(f'{heading:>12}' for heading in _COLUMNS.values())
  yield f'{"by client":<20}{"clients":>8}  {"metric":<16}{headings}'
  for name, metrics in by_clients.items():
    summary = metrics.summarize()
    for metric in metrics.values:
      values = (summary.get(f'{metric}_{column}') for column in _COLUMNS)
      numbers = ''.join(
          f'{"-" if value is None else format(value, ".4g"):>12}'
          for value in values
      )
      count = len(metrics.client_ids)
      yield f'{name:<20}{count:>8,}  {metric:<16}{numbers}'
