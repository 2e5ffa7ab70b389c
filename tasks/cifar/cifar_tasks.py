# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What builds the tasks on CIFAR-10 and CIFAR-100."""

from typing import Optional, Union

import attrs

from tasks import keras_classification
from tasks.cifar import cifar_models
from tasks.cifar import cifar_preprocessing
from tasks.cifar import resnet
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sources
from tff_adaptive.data import transforms
from tff_adaptive.simulation import task


@attrs.frozen
class CifarData:
  """Images and their classes, as clients hold them.

  Attributes:
    train: The clients, with `cifar_preprocessing.CLIENT_SPEC`.
    central_test: The test set, the same features with a dimension of examples
      in front.
    test: Clients to evaluate on, or None.
  """

  train: client_data.ClientArrays
  central_test: feature_arrays.Examples
  test: Optional[client_data.ClientArrays] = None


@attrs.frozen
class CifarDataset:
  """What tells the two data sets apart.

  Attributes:
    name: The name of the task.
    num_classes: The number of classes.
    statistics: What pixels are scaled by.
  """

  name: str
  num_classes: int
  statistics: cifar_preprocessing.ChannelStatistics

  def build_task(
      self,
      data: CifarData,
      *,
      model_id: Union[cifar_models.ModelID, str],
      norm: str,
      augmentation: str,
      seed: int,
      protocol: task.Protocol,
  ) -> task.Task:
    """Builds the task.

    Args:
      data: The images.
      model_id: Which model, see `cifar_models.build_keras_model`.
      norm: What it normalizes by; there is no functional model for 'batch',
        where predictions for an example depend on its batch.
      augmentation: What happens to images, see
        `cifar_preprocessing.to_model_inputs`.
      seed: The seed of the initial weights.
      protocol: The numbers of training.

    Returns:
      The task. Its clients hold images as they are, uint8, which an
      augmentation turns into what the model takes.

    Raises:
      ValueError: If the model, the norm or the augmentation is unknown, or the
        protocol wants more clients a round than there are.
    """
    keras_model = cifar_models.build_keras_model(
        model_id, self.num_classes, seed, augmentation=augmentation, norm=norm
    )
    functional_model = None
    if norm != resnet.BATCH_NORM:
      functional_model = cifar_models.to_functional_model(
          keras_model, augmentation
      )
    return task.Task(
        name=self.name,
        functional_model=functional_model,
        variable_model_fn=cifar_models.build_variable_model_fn(
            model_id,
            self.num_classes,
            seed,
            augmentation=augmentation,
            norm=norm,
        ),
        train_data=data.train,
        central_test=self._to_model_inputs(data.central_test, augmentation),
        test_data=self._map_test(data.test, augmentation),
        protocol=protocol,
        num_classes=self.num_classes,
        representation_fn=keras_classification.to_representation_fn(
            keras_model, cifar_models.input_spec(augmentation)
        ),
        augmentation=cifar_preprocessing.build_augmentation(
            augmentation, self.statistics
        ),
    )

  def _to_model_inputs(
      self, examples: feature_arrays.Examples, augmentation: str
  ) -> feature_arrays.Examples:
    return cifar_preprocessing.to_model_inputs(
        examples, augmentation, self.statistics
    )

  def _map_test(
      self, source: Optional[client_data.ClientArrays], augmentation: str
  ) -> Optional[client_data.ClientArrays]:
    if source is None:
      return None
    return transforms.map_clients(
        source,
        lambda examples: self._to_model_inputs(examples, augmentation),
        cifar_preprocessing.element_spec(augmentation),
        keeps_sizes=True,
    )


def read_published(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    test_data: Optional[sources.ClientSource] = None,
) -> CifarData:
  """Reads the caller's own images, in the form that TFF publishes.

  Args:
    train_data: The clients, with the features 'image', uint8 of shape [32, 32,
      3], and 'label', the class, an integer. What `sources.read_clients`
      takes: `ClientArrays`, TFF's `ClientData`, a mapping from client ids to
      features, or the path of a file, of which the rows of split 'train' count.
    central_test: The test set, with the same features. What
      `sources.read_examples` takes, of a file the rows of split 'test'.
    test_data: Clients to evaluate on one by one, like `train_data`, of a file
      the rows of split 'test'. None (the default) for none.

  Returns:
    The images, as clients hold them.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of CIFAR.
  """
  spec = cifar_preprocessing.RAW_SPEC
  test = None
  if test_data is not None:
    test = to_clients(
        sources.read_clients(
            test_data, spec, split_name='test', name='The test clients'
        )
    )
  central = sources.read_examples(
      central_test, spec, split_name='test', name='The central test data'
  )
  train = sources.read_clients(train_data, spec, split_name='train')
  return CifarData(
      to_clients(train), cifar_preprocessing.to_examples(central), test
  )


def to_clients(source: client_data.ClientArrays) -> client_data.ClientArrays:
  """Renames the features of published clients, image by image unchanged.

  Args:
    source: Clients with `cifar_preprocessing.RAW_SPEC`.

  Returns:
    The same clients with `cifar_preprocessing.CLIENT_SPEC`.
  """
  return transforms.map_clients(
      source,
      cifar_preprocessing.to_examples,
      cifar_preprocessing.CLIENT_SPEC,
      keeps_sizes=True,
      cache_bytes=0,
  )
