# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The training, test and validation data of Stack Overflow's tasks."""

from tasks import data
from tasks import synthetic_data
from tasks.arguments import Argument
from tasks.language import bags_of_words
from tasks.language import stackoverflow_files
from tasks.language import word_sequences
from tff_adaptive.data import sampling

_VOCAB_SIZE = Argument(
    'vocab_size',
    stackoverflow_files.DEFAULT_VOCAB_SIZE,
    'The number of words in the vocabulary, the most frequent ones.',
    minimum=1,
)
_TEST_ARGUMENTS = (
    Argument(
        'test_split',
        stackoverflow_files.TEST,
        'The split to test on: posts since 2018 of all but the held-out users '
        '(test), or posts of these (heldout).',
        choices=(stackoverflow_files.TEST, stackoverflow_files.HELDOUT),
    ),
    Argument(
        'num_test_examples',
        stackoverflow_files.DEFAULT_NUM_TEST_EXAMPLES,
        'The number of examples sampled for testing, and for validation.',
        minimum=1,
    ),
)


class _Posts(data.Data):
  """Sentences of users; clients stay in the file until they are needed.

  Attributes:
    features: The features of a published example to use, all strings.
    files: The files that are read, besides a user's own vocabulary.
  """

  features: tuple[str, ...]
  files: tuple[str, ...]

  def check_files(self, data_dir):
    for file in self.files:
      stackoverflow_files.find(data_dir, file)

  def load(self, args, data_dir, seed):
    def load(split_name):
      return stackoverflow_files.load_stackoverflow(
          data_dir, split_name, self.published_spec()
      )

    def sample(clients, name):
      return sampling.sample_examples_evenly(
          clients, args.num_test_examples, seed, name
      )

    test = load(args.test_split)
    validation = None
    if args.test_split != stackoverflow_files.HELDOUT:
      validation = sample(load(stackoverflow_files.HELDOUT), 'validation')
    return data.Splits(
        load(stackoverflow_files.TRAIN),
        sample(test, 'central_test'),
        test,
        validation,
    )

  def has_validation(self, given):
    return given.get('test_split') != stackoverflow_files.HELDOUT

  def published_spec(self):
    return data.spec(**dict.fromkeys(self.features, ('string', [])))

  def complete(self, args):
    if args.vocabulary is not None:
      args.vocab_size = len(args.vocabulary)
    return args

  @property
  def synthetic_files(self):
    return {
        stackoverflow_files.POSTS: synthetic_data.write_stackoverflow,
        stackoverflow_files.WORD_COUNTS: synthetic_data.write_word_counts,
        stackoverflow_files.TAG_COUNTS: synthetic_data.write_tag_counts,
    }


def _words(args, data_dir):
  return _vocabulary(
      args.vocabulary,
      'vocabulary',
      data_dir,
      stackoverflow_files.load_word_vocabulary,
      args.vocab_size,
  )


def _vocabulary(given, name, data_dir, load, size):
  """Returns the user's vocabulary, or else the data set's."""
  if given is not None:
    return given
  if data_dir is None:
    raise TypeError(f'`{name}` is missing: it is required with your own data.')
  return load(data_dir, size)


class NextWords(_Posts):
  """Sequences of words, with the next words as labels."""

  features = ('tokens',)
  files = (stackoverflow_files.POSTS, stackoverflow_files.WORD_COUNTS)
  extra_arguments = ('vocabulary',)
  arguments = (
      _VOCAB_SIZE,
      Argument(
          'sequence_length',
          stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
          'The number of words in a sequence.',
          minimum=1,
      ),
      *_TEST_ARGUMENTS,
  )

  def element_spec(self, args):
    tokens = ('int32', [args.sequence_length])
    return data.spec(x=tokens, y=tokens)

  def num_classes(self, args):
    return args.vocab_size + word_sequences.NUM_SPECIAL_TOKENS

  def build_prepare(self, args, train, data_dir):
    return word_sequences.WordSequences(
        _words(args, data_dir), args.sequence_length
    )


class Tags(_Posts):
  """The words of sentences in the model's form, and their tags."""

  features = ('tokens', 'title', 'tags')
  files = (*NextWords.files, stackoverflow_files.TAG_COUNTS)
  extra_arguments = ('vocabulary', 'tag_vocabulary')
  arguments = (
      _VOCAB_SIZE,
      Argument(
          'tag_vocab_size',
          stackoverflow_files.DEFAULT_TAG_VOCAB_SIZE,
          'The number of tags to predict, the most frequent ones.',
          minimum=5,
      ),
      Argument(
          'max_words',
          bags_of_words.DEFAULT_MAX_WORDS,
          'For words: the maximum number of words of an example.',
          minimum=1,
          models=('words',),
      ),
      *_TEST_ARGUMENTS,
  )

  def complete(self, args):
    if args.tag_vocabulary is not None:
      args.tag_vocab_size = len(args.tag_vocabulary)
    return super().complete(args)

  def element_spec(self, args):
    if args.model_id == 'words':
      words = ('int32', [args.max_words])
    else:
      words = ('float32', [args.vocab_size])
    return data.spec(x=words, y=('float32', [args.tag_vocab_size]))

  def num_classes(self, args):
    return None

  def build_prepare(self, args, train, data_dir):
    words = _words(args, data_dir)
    tags = _vocabulary(
        args.tag_vocabulary,
        'tag_vocabulary',
        data_dir,
        stackoverflow_files.load_tag_vocabulary,
        args.tag_vocab_size,
    )
    if args.model_id == 'words':
      return bags_of_words.WordLists(words, tags, args.max_words)
    return bags_of_words.WordFrequencies(words, tags)
