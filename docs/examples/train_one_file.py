# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A whole experiment in one file, to read and to change.

  python docs/examples/train_one_file.py --client_optimizer=delta_sgd

trains on handwritten digits, split unevenly among 50 clients, and writes a row
of metrics a round to a CSV file. `experiments.train` is this program with all
tasks and methods, checkpoints, plots and checks.
"""

import csv

from absl import app
from absl import flags

from tasks import digits
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import evaluation
from tff_adaptive import optimizers
from tff_adaptive import runtime

# The builders of the client optimizers; Delta-SGD needs no learning rate.
_CLIENT_OPTIMIZERS = {
    'delta_sgd': optimizers.build_delta_sgd,
    'sgd': lambda: optimizers.build_sgd(0.1),
}

_CLIENT_OPTIMIZER = flags.DEFINE_enum(
    'client_optimizer', 'delta_sgd', _CLIENT_OPTIMIZERS, 'How clients train.'
)
_ROUNDS = flags.DEFINE_integer('rounds', 40, 'The number of rounds.')
_SEED = flags.DEFINE_integer('seed', 0, 'Of weights, clients and batches.')
_CSV = flags.DEFINE_string('csv', 'metrics.csv', 'The file of the metrics.')


def main(argv):
  """Trains and writes the metrics of every round."""
  del argv  # Unused.
  task = digits.DIGITS.create(seed=_SEED.value)
  process = algorithms.build_fed_opt(
      task.model,
      _CLIENT_OPTIMIZERS[_CLIENT_OPTIMIZER.value](),
      optimizers.build_fedavg(),
  )
  cohort_fn = data.build_cohort_fn(
      task.train_data,
      task.protocol.clients_per_round,
      task.protocol.batch_plan(),
      seed=_SEED.value,
  )
  evaluate = evaluation.build_central_evaluation(task.model, task.central_test)
  with (
      runtime.CompiledContext(),  # Without it, TFF's own runtime trains.
      open(_CSV.value, 'w', encoding='utf-8', newline='') as file,
  ):
    writer = csv.writer(file)
    writer.writerow(['round_num', 'train_loss', 'test_loss', 'test_accuracy'])
    state = process.initialize()
    for round_num in range(1, _ROUNDS.value + 1):
      output = process.next(state, cohort_fn(round_num - 1))
      state = output.state
      train_loss = float(output.metrics['client_work']['clients']['loss'])
      test = evaluate(process.get_model_weights(state))
      writer.writerow([round_num, train_loss, test['loss'], test['accuracy']])
      print(
          f'round {round_num}: loss {train_loss:.4f}, '
          f'accuracy {test["accuracy"]:.4f}',
          flush=True,
      )


if __name__ == '__main__':
  app.run(main)
