# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stands in for `experiments.train`: leaves the files of a run at once.

It ends after three rounds, as if it had stopped early where there are more.

Its loss is the distance of the learning rate to 0.1. With a rate of 13 it fails
with a sentence; with 99 epochs it waits for SIGINT and ends with 130.
"""

import json
import pathlib
import signal
import sys
import time

_ROUNDS = 3
_DEFAULT_ROUNDS = 100  # Of digits.


def _interrupt(number, frame):
  del number, frame  # Unused.
  print('saved.')
  sys.exit(130)


def main():
  flags = dict(text.lstrip('-').partition('=')[::2] for text in sys.argv[1:])
  folder = pathlib.Path(flags['output_dir']) / flags['experiment_name']
  rate = float(flags.get('client_learning_rate', 0))
  if rate == 13:
    sys.exit('error: it is thirteen.')
  folder.mkdir(parents=True, exist_ok=True)
  if flags.get('client_epochs') == '99':
    signal.signal(signal.SIGINT, _interrupt)
    (folder / 'hparams.json').write_text('{"total_rounds": 3}')
    (folder / 'waits').touch()
    time.sleep(60)
  total_rounds = int(flags.get('total_rounds', _DEFAULT_ROUNDS))
  (folder / 'hparams.json').write_text(
      json.dumps({'total_rounds': total_rounds, 'seed': int(flags['seed'])})
  )
  loss = abs(rate - 0.1)
  rows = [
      f'{n},{loss},0.5,10,100,200,{0.9 - loss},1.5\n'
      for n in range(1, _ROUNDS + 1)
  ]
  (folder / 'metrics.csv').write_text(
      'round_num,clients/loss,train/accuracy,clients/num_gradient_evaluations,'
      'clients/bytes_up,clients/bytes_down,evaluation/accuracy,seconds\n'
      + ''.join(rows)
  )
  starts = folder.parent / f'{folder.name}.starts'
  with open(starts, 'a') as file:
    file.write('started\n')
  print('done.')


if __name__ == '__main__':
  main()
