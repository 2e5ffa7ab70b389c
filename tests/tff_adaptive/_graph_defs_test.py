# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the functions that graphs bring along."""

from unittest import mock

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive import _graph_defs


def _library_and_calls():
  """Returns the functions of a graph, some nested, and its calls."""

  @tf.function
  def inner(x):
    return x + 1.0

  @tf.function
  def outer(x):
    return 2.0 * inner(x)

  @tf.function
  def lonely(x):
    return x - 1.0

  with tf.Graph().as_default() as graph:
    x = tf.constant(1.0)
    outer(x)
    lonely(x)
    tf.cond(x > 0.0, lambda: inner(x), lambda: x)
  graph_def = graph.as_graph_def()
  return graph_def.library, {
      name: [node for node in graph_def.node if name in str(node.attr)]
      for name in ('outer', 'lonely', 'cond')
  }


def _names(library):
  kinds = ('inner', 'outer', 'lonely', 'cond_true', 'cond_false')
  return {
      kind
      for kind in kinds
      for function in library.function
      if kind in function.signature.name
  }


class SelectCalledTest(tf.test.TestCase):

  def test_has_what_functions_call(self):
    library, calls = _library_and_calls()
    for called, expected in (
        (calls['outer'], {'outer', 'inner'}),
        (calls['lonely'], {'lonely'}),
        (calls['cond'], {'cond_true', 'cond_false', 'inner'}),
        (calls['outer'] + calls['lonely'], {'outer', 'inner', 'lonely'}),
        ([], set()),
    ):
      with self.subTest(str(sorted(expected))):
        selected = _graph_defs.select_called(called, library)
        self.assertEqual(_names(selected), expected)

  def test_brings_gradients_and_keeps_the_order(self):
    library = tf.compat.v1.GraphDef().library
    for name in ('a', 'b', 'c', 'd'):
      library.function.add().signature.name = name
    library.gradient.add(function_name='b', gradient_func='a')
    library.gradient.add(function_name='d', gradient_func='c')
    node = tf.compat.v1.NodeDef(name='call', op='b')
    selected = _graph_defs.select_called([node], library)
    self.assertEqual([f.signature.name for f in selected.function], ['a', 'b'])
    self.assertEqual([g.function_name for g in selected.gradient], ['b'])


def _check(x):
  tf.debugging.Assert(x < 10.0, [x])
  return x


def _draw(x):
  return x + tf.random.uniform([])


def _read(x):
  return x + tf.raw_ops.ReadVariableOp(
      resource=tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[]),
      dtype=tf.float32,
  )


def _shout(x):
  tf.print(x)
  return x


def _choose(x):
  return tf.switch_case(tf.cast(x, tf.int32), [lambda: _draw(x), lambda: x])


class HasEffectsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (tf.square, False),
      (_check, False),
      (_draw, True),
      (_read, True),
      (_shout, True),
      (_choose, True),
  )
  def test_finds_them_wherever_they_are(self, fn, expected):
    inner = tf.function(fn)
    forms = {
        'itself': fn,
        'call': inner,
        'branch': lambda x: tf.cond(x > 0.0, lambda: fn(x), lambda: x),
        'loop': lambda x: tf.while_loop(lambda x: x < 0.0, inner, [x])[0],
    }
    for name, form in forms.items():
      with self.subTest(name), tf.Graph().as_default() as graph:
        tf.function(form)(tf.constant(1.0))
        library = graph.as_graph_def().library
        functions = {f.signature.name: f for f in library.function}
        (call,) = (
            node for node in graph.as_graph_def().node if 'Call' in node.op
        )
        (called,) = _graph_defs.called_functions(call, functions)
        self.assertEqual(_graph_defs.has_effects(called, functions), expected)

  def test_functions_that_are_unknown_may_have_some(self):
    library, calls = _library_and_calls()
    functions = {f.signature.name: f for f in library.function}
    (outer,) = _graph_defs.called_functions(calls['outer'][0], functions)
    self.assertFalse(_graph_defs.has_effects(outer, functions))
    self.assertTrue(_graph_defs.has_effects(outer, {outer: functions[outer]}))

  def test_functions_that_call_each_other_many_times(self):
    library = tf.compat.v1.GraphDef().library
    for i in range(40):
      function = library.function.add()
      function.signature.name = f'f{i}'
      for j in (i + 1, i + 1, 0):
        if j < 40:
          function.node_def.add(op='PartitionedCall').attr['f'].func.name = (
              f'f{j}'
          )
    functions = {f.signature.name: f for f in library.function}
    self.assertFalse(_graph_defs.has_effects('f0', functions))


def _graph_def():
  """The sum of two placeholders, after a third node."""
  with tf.Graph().as_default() as graph:
    x, y = (
        tf.compat.v1.placeholder(tf.float32, [], name=name) for name in 'xy'
    )
    with tf.control_dependencies([tf.square(x, name='before'), y.op]):
      tf.add(x, y, name='total')
  return graph.as_graph_def()


class ImportTest(tf.test.TestCase):

  def test_dependencies_come_first(self):
    nodes = {node.name: node for node in reversed(_graph_def().node)}
    found = [n.name for n in _graph_defs.in_order(nodes, ['total:0'])]
    self.assertCountEqual(found, ['x', 'y', 'before', 'total'])
    self.assertEqual(found[-1], 'total')
    self.assertLess(found.index('x'), found.index('before'))

  def test_others_count_as_no_dependency(self):
    nodes = {node.name: node for node in _graph_def().node if node.name != 'x'}
    found = _graph_defs.in_order(nodes, ['^before', 'x'])
    self.assertEqual([node.name for node in found], ['before'])

  def test_import_reads_given_tensors(self):
    graph_def = _graph_def()
    _graph_defs.remove_nodes(graph_def, ['x:0', 'y:0'])

    @tf.function
    def run(x):
      given = {'x:0': x, 'y:0': x, 'unread:0': x}
      return _graph_defs.import_with(graph_def, given, ['total:0', 'x:0'])

    total, x = run(tf.constant(2.0))
    self.assertEqual((total, x), (4.0, 2.0))

  def test_nodes_in_functions_do_not_share_names_with_captured_tensors(self):
    with tf.Graph().as_default() as graph:
      x = tf.compat.v1.placeholder(tf.float32, [], name='x')
      names = [tf.identity(x).name for _ in range(4)]
    graph_def = graph.as_graph_def()
    _graph_defs.remove_nodes(graph_def, ['x:0'])
    with tf.Graph().as_default():
      given = {'x:0': tf.constant(1.0)}
      # The placeholders of these have the names of imported nodes but one.
      outer = _graph_defs.import_with(graph_def, given, names)[:-1]

      @tf.function
      def run():
        inputs = list(map(_graph_defs.captured, outer))
        given = {'x:0': tf.add_n(inputs)}
        return _graph_defs.import_with(graph_def, given, names)

      operations = run.get_concrete_function().graph.get_operations()
    self.assertLen({op.name for op in operations}, len(operations))

  def test_added_function_brings_those_it_calls(self):
    library = tf.compat.v1.GraphDef().library
    inner = tf.function(lambda x: x + 1.0)
    call = _graph_defs.add_function(
        lambda x: 2.0 * inner(x), [tf.TensorSpec([], tf.float32)], library
    )
    names = [function.signature.name for function in library.function]
    self.assertLen(names, 2)
    self.assertIn(call.attr['f'].func.name, names)
    found = _graph_defs.find(library, names[0])
    self.assertEqual(found.signature.name, names[0])

  def test_added_function_may_be_changed_while_the_traced_one_is_there(self):
    library, kept, trace = tf.compat.v1.GraphDef().library, [], tf.function

    def keep(*args, **kwargs):
      kept.append(trace(*args, **kwargs))
      return kept[-1]

    with mock.patch.object(tf, 'function', keep):
      _graph_defs.add_function(
          lambda x: tf.identity(x + 1.0),
          [tf.TensorSpec([], tf.float32)],
          library,
      )
    graph_def = tf.compat.v1.GraphDef(library=library)
    _graph_defs.pass_identities_by(graph_def, [])
    self.assertNotEqual(graph_def.library, library)
    _graph_defs.register_functions(graph_def.library)


class IdentitiesTest(tf.test.TestCase):

  def test_those_that_only_pass_on_are_passed_by(self):
    @tf.function
    def double(x):
      return tf.identity(tf.identity(x) * 2.0)

    graph = tf.Graph()
    with graph.as_default():
      x = tf.compat.v1.placeholder(tf.float32, [2], 'x')
      _, second = tf.unstack(tf.identity(x), name='parts')
      with tf.control_dependencies([tf.no_op('before')]):
        waits = tf.identity(second, 'waits')
      doubled = tf.add(double(tf.identity(second)), waits, 'doubled')
      twice = tf.identity(tf.identity(doubled))
    graph_def = graph.as_graph_def()
    names = _graph_defs.pass_identities_by(
        graph_def, [twice.name, x.name, waits.name]
    )
    self.assertEqual(names, ['doubled:0', 'x:0', 'waits:0'])
    nodes = {node.name: node for node in graph_def.node}
    self.assertEqual(list(nodes['parts'].input), ['x'])
    self.assertEqual(list(nodes['waits'].input), ['parts:1', '^before'])
    (call,) = (n for n in graph_def.node if 'PartitionedCall' in n.op)
    self.assertEqual(list(call.input), ['parts:1'])
    (body,) = graph_def.library.function
    (product,) = (node for node in body.node_def if node.op == 'Mul')
    self.assertEqual(product.input[0], 'x')

    needed = _graph_defs.in_order(nodes, names)
    self.assertEqual([n.name for n in needed if n.op == 'Identity'], ['waits'])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      (again,) = _graph_defs.import_with(graph_def, {}, names[:1])
      self.assertAllEqual(session.run(again, {'imported/x:0': [1.0, 3.0]}), 9.0)
