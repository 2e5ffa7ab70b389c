# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads DistilBERT's weights and tokens in Hugging Face's layout.

Nothing here uses the network.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import pathlib
from typing import Any

import attrs
import numpy as np

from tasks.texts import word_vocabulary
from tff_adaptive import _error_texts
from tff_adaptive import _files
from tff_adaptive.data import specs

_CONFIG = 'config.json'
_MODEL_TYPE = 'distilbert'
_WEIGHTS = ('tf_model.h5', 'model.safetensors')
_VOCABULARIES = ('vocab.txt', 'tokenizer.json')
# While it works, the tokenizer holds 58 KB for a text of 512 tokens.
_TEXTS_AT_ONCE = 1000
# Keras' and PyTorch's names of a layer's weights.
_TORCH_LEAVES = {
    'beta': 'bias',
    'embeddings': 'weight',
    'gamma': 'weight',
    'kernel': 'weight',
}


@attrs.frozen
class WordPieces:
  """WordPiece tokens, as defined by a model's folder."""

  _tokenizer: Any

  def encode(
      self, texts: Iterable[word_vocabulary.Text], max_length: int
  ) -> np.ndarray:
    """Returns the tokens of texts, truncated or padded to one length.

    Args:
      texts: The texts, strings or UTF-8 bytes.
      max_length: The maximum number of tokens of a text, including the start
        and end tokens.

    Returns:
      The tokens, int32 of shape [num_texts, max_length].
    """
    texts = [word_vocabulary.to_str(text) for text in texts]
    tokens = np.empty([len(texts), max_length], np.int32)
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
      part = slice(start, start + _TEXTS_AT_ONCE)
      encoded = self._tokenizer(
          texts[part],
          max_length=max_length,
          padding='max_length',
          truncation=True,
          return_attention_mask=False,
          return_tensors='np',
      )
      tokens[part] = encoded['input_ids']
    return tokens


def load_config(pretrained_dir: _files.PathLike) -> dict[str, Any]:
  """Loads the architecture from `config.json`.

  Args:
    pretrained_dir: The folder.

  Returns:
    The arguments of `transformers.DistilBertConfig`.

  Raises:
    FileNotFoundError: If the folder or the file is missing.
    ValueError: If the file is damaged, or of another architecture.
  """
  # Imported here because it takes seconds; words do not need it.
  import transformers  # pylint: disable=g-import-not-at-top

  path = _existing(pretrained_dir, _CONFIG)
  with _named_errors(path):
    config, _ = transformers.DistilBertConfig.get_config_dict(
        path.parent, local_files_only=True
    )
  if config.get('model_type') != _MODEL_TYPE:
    raise ValueError(
        f"{path} must be of the model type '{_MODEL_TYPE}', found "
        f'{config.get("model_type")!r}.'
    )
  return config


def load_word_pieces(pretrained_dir: _files.PathLike) -> WordPieces:
  """Loads the vocabulary, from `vocab.txt` or `tokenizer.json`.

  Args:
    pretrained_dir: The folder. If it has a `tokenizer_config.json`, that says
      whether case matters; by default it does not.

  Returns:
    The tokenizer.

  Raises:
    FileNotFoundError: If there is no vocabulary.
    ValueError: If it is damaged, lacks the special tokens, or does not match
      `config.json`.
  """
  import transformers  # pylint: disable=g-import-not-at-top

  config = load_config(pretrained_dir)
  path = _existing(pretrained_dir, *_VOCABULARIES)
  with _named_errors(path):
    tokenizer = transformers.DistilBertTokenizerFast.from_pretrained(
        path.parent, local_files_only=True
    )
  vocab_size = config.get('vocab_size', len(tokenizer))
  pad = config.get('pad_token_id', 0)
  if len(tokenizer) > vocab_size or tokenizer.pad_token_id != pad:
    raise ValueError(
        f'{path} must hold at most {vocab_size} tokens with padding token '
        f'{pad}, to match {_CONFIG}; found {len(tokenizer)} with padding token '
        f'{tokenizer.pad_token_id}.'
    )
  return WordPieces(tokenizer)


def load_encoder_weights(pretrained_dir: _files.PathLike) -> list[np.ndarray]:
  """Loads the weights, except for those of a head.

  Args:
    pretrained_dir: The folder, with `tf_model.h5`, or `model.safetensors` of
      PyTorch or TensorFlow.

  Returns:
    Arrays in the order of the variables of `distilbert.DistilBertEncoder`.

  Raises:
    FileNotFoundError: If there are no weights.
    ValueError: If they are damaged, incomplete, or do not match `config.json`.
  """
  shapes = _shapes(load_config(pretrained_dir))
  path = _existing(pretrained_dir, *_WEIGHTS)
  with _named_errors(path):
    tensors = _read_h5(path) if path.suffix == '.h5' else _read_safe(path)
  weights = []
  for name, shape in shapes.items():
    found = tensors.get(name, np.zeros([0])).shape
    if found != shape:
      raise ValueError(
          f'{path} must hold {name} of shape {list(shape)} to match {_CONFIG}, '
          f'found {list(found) if name in tensors else "none"}.'
      )
    weight, changed = specs.cast(tensors[name], np.float32)
    if specs.kind(tensors[name].dtype) != 'f' or changed.any():
      raise ValueError(
          f'{path} must hold {name} as floats that float32 can hold, found '
          f'{tensors[name].dtype}.'
      )
    weights.append(weight)
  return weights


def _shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
  """Returns the PyTorch names of the weights, with Keras' shapes."""
  import transformers  # pylint: disable=g-import-not-at-top

  sizes = transformers.DistilBertConfig(**config)
  dim, hidden = sizes.dim, sizes.hidden_dim
  blocks = {
      'attention.q_lin': (dim, dim),
      'attention.k_lin': (dim, dim),
      'attention.v_lin': (dim, dim),
      'attention.out_lin': (dim, dim),
      'sa_layer_norm': (dim,),
      'ffn.lin1': (dim, hidden),
      'ffn.lin2': (hidden, dim),
      'output_layer_norm': (dim,),
  }
  shapes: dict[str, tuple[int, ...]] = {
      'embeddings.word_embeddings.weight': (sizes.vocab_size, dim),
      'embeddings.position_embeddings.weight': (
          sizes.max_position_embeddings,
          dim,
      ),
      'embeddings.LayerNorm.weight': (dim,),
      'embeddings.LayerNorm.bias': (dim,),
  }
  for layer in range(sizes.n_layers):
    for name, shape in blocks.items():
      prefix = f'transformer.layer.{layer}.{name}'
      shapes[f'{prefix}.weight'] = shape
      shapes[f'{prefix}.bias'] = shape[-1:]
  return shapes


def _read_h5(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Returns the weights that Keras saved, by their PyTorch names."""
  import h5py  # pylint: disable=g-import-not-at-top

  tensors = {}

  def keep(name, item):
    if isinstance(item, h5py.Dataset):
      tensors[_torch_name(name)] = item[()]

  with h5py.File(path, 'r') as file:
    file.visititems(keep)
  return tensors


def _read_safe(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Returns the weights that either library saved, by PyTorch names."""
  from safetensors import numpy as safetensors  # pylint: disable=g-import-not-at-top

  tensors = {}
  for name, tensor in safetensors.load_file(path).items():
    is_torch = '/' not in name
    # A dense layer's output is a row in PyTorch, and a column in Keras.
    is_dense = tensor.ndim == 2 and 'embeddings' not in name
    tensors[_torch_name(name)] = tensor.T if is_torch and is_dense else tensor
  return tensors


def _torch_name(name: str) -> str:
  """Returns the PyTorch name of a weight, without the model's prefix."""
  separator = '/' if '/' in name else '.'
  *path, last = name.split(':')[0].split(separator)
  begin = min(
      (
          path.index(part)
          for part in ('embeddings', 'transformer')
          if part in path
      ),
      default=0,
  )
  leaf = _TORCH_LEAVES.get(last, last)
  return '.'.join([*path[begin:], leaf]).replace('layer_._', 'layer.')


def _existing(pretrained_dir: _files.PathLike, *names: str) -> pathlib.Path:
  """Returns the first of some files that exists."""
  folder = pathlib.Path(pretrained_dir)
  for name in names:
    if (folder / name).exists():
      _files.tell_of_reading(folder / name)
      return folder / name
  raise FileNotFoundError(
      f'`pretrained_dir` must be a folder with {" or ".join(names)}, as '
      f'Hugging Face publishes DistilBERT, but {folder} has none.'
  )


@contextlib.contextmanager
def _named_errors(path: pathlib.Path) -> Iterator[None]:
  """Turns a library's errors on a damaged file into one sentence."""
  try:
    yield
  except (MemoryError, PermissionError):
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    # From json, h5py, safetensors or transformers.
    raise ValueError(
        f'{path} could not be read ({_error_texts.first_line(error)}); replace '
        'it by an intact copy.'
    ) from error
