# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small made-up data sets and models of texts, as the tests write them."""

import gzip
import json
import pathlib

import numpy as np

# Words that identify a class.
_WORDS = ('cup', 'win', 'bank', 'rates', 'moon', 'chip', 'vote', 'war')
SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
PIECES = (*SPECIAL_TOKENS, 'the', *_WORDS, '##s', '##ner')


def make_rows(num_train, num_test, num_classes):
  """Returns rows of a file: split, text and label."""
  generator = np.random.default_rng(1)
  rows = []
  for place in range(num_train + num_test):
    label = place % num_classes
    words = generator.choice(_WORDS, 4)
    rows.append(
        dict(
            split='train' if place < num_train else 'test',
            text=f'The {_WORDS[label % len(_WORDS)]}: {" ".join(words)}',
            label=label,
        )
    )
  return rows


def write_jsonl(path: pathlib.Path, rows) -> None:
  with gzip.open(path, 'wt', encoding='utf-8') as file:
    file.writelines(f'{json.dumps(row)}\n' for row in rows)


def write_pretrained(folder: pathlib.Path):
  """Writes a DistilBERT of 2 layers of 16 numbers; returns it."""
  import transformers

  config = transformers.DistilBertConfig(
      vocab_size=len(PIECES),
      max_position_embeddings=16,
      n_layers=2,
      n_heads=2,
      dim=16,
      hidden_dim=32,
  )
  model = transformers.TFDistilBertModel(config)
  # Its weights get their names in a call.
  model(model.dummy_inputs)
  model.save_pretrained(folder, safe_serialization=False)
  (folder / 'vocab.txt').write_text('\n'.join(PIECES), encoding='utf-8')
  return model
