import t from 'tap'
import {
  ancestorsOf,
  indentedJson,
  initiallyCollapsed,
  jsonTree,
  matchingNodes,
  pathOf,
  rowOfNode,
  visibleNodes
} from '../../src/relay-admin/json-tree.js'
import { required } from '../helper/required.js'

const treeOf = (text: string) => required(jsonTree(text))
const keys = (text: string): string[] => treeOf(text).map(({ key, text: value }) => `${key}=${value}`)

t.test('a JSON tree', async (t) => {
  t.test('the tree has all nodes in document order', async (t) => {
    const nodes = treeOf(' {"a": [1, {"b": null}], "c": "d" } ')
    t.same(
      nodes.map(({ key, depth, kind, size, end }) => [key, depth, kind, size, end]),
      [
        ['', 0, 'object', 2, 6],
        ['a', 1, 'list', 2, 5],
        ['0', 2, 'number', 0, 3],
        ['1', 2, 'object', 1, 5],
        ['b', 3, 'word', 0, 5],
        ['c', 1, 'string', 0, 6]
      ]
    )
  })

  t.test('the tree keeps digits, duplicate keys and the order of keys', async (t) => {
    t.same(keys('{"2":12345678901234567890,"1":1.0,"2":-1e+9}'), ['=', '2=12345678901234567890', '1=1.0', '2=-1e+9'])
  })

  t.test('the tree decodes characters that JSON need not escape', async (t) => {
    t.same(keys('["\\u00e9\\n", "a\\\\", "\\"]", ":,{"]'), ['=', '0="é\\n"', '1="a\\\\"', '2="\\"]"', '3=":,{"'])
  })

  for (const text of ['', '{', '[1', 'eyJhIjox', '{"a":1}x']) {
    t.test(`"${text}" is not a JSON tree`, async (t) => t.equal(jsonTree(text), null))
  }

  for (const text of ['1', '"a"', 'null', '[]', '{}']) {
    t.test(`${text} is a tree with one node`, async (t) => t.equal(treeOf(text).length, 1))
  }

  t.test('the tree of 100,000 nested lists is built without recursion', async (t) => {
    const depth = 100_000
    const nodes = treeOf(`${'['.repeat(depth)}"deep"${']'.repeat(depth)}`)
    t.equal(nodes.at(-1)?.depth, depth)
    t.equal(ancestorsOf(nodes, depth).length, depth)
    t.ok(pathOf(nodes, depth).length < 500)
    t.same(matchingNodes(nodes, 'DEEP'), [depth])
  })
})

t.test('indented JSON', async (t) => {
  const VALUES = [1, 'a"b\n', [], {}, [1, [2, { a: [] }]], { a: { b: {}, 'c d': [null, true] }, e: 'f' }]
  for (const value of VALUES) {
    const text = JSON.stringify(value)
    t.test(`${text} is indented like JSON.stringify does`, async (t) =>
      t.equal(indentedJson(treeOf(text)), JSON.stringify(value, null, 2))
    )
  }

  t.test('indented JSON keeps all digits and duplicate keys', async (t) => {
    t.equal(
      indentedJson(treeOf('{"a":1.0,"a":12345678901234567890}')),
      '{\n  "a": 1.0,\n  "a": 12345678901234567890\n}'
    )
  })

  t.test('indented JSON of 30,000 levels does not grow with the square of the depth', async (t) => {
    const text = indentedJson(treeOf(`${'['.repeat(30_000)}${']'.repeat(30_000)}`))
    t.ok(text.length < 4_000_000)
    t.equal(treeOf(text).length, 30_000)
  })
})

t.test('the nodes of a JSON tree', async (t) => {
  const nodes = treeOf('{"data":[{"id":"tx-1","a b":2},{"id":"tx-2"}],"more":{}}')

  t.test('collapsed nodes hide their descendants', async (t) => {
    t.same(visibleNodes(nodes, new Set()).length, nodes.length)
    const visible = visibleNodes(nodes, new Set([2]))
    t.same(visible, [0, 1, 2, 5, 6, 7])
    t.equal(rowOfNode(visible, 5), 3)
    t.equal(rowOfNode(visible, 3), -1)
  })

  t.test('long documents are collapsed below the second level', async (t) => {
    t.equal(initiallyCollapsed(nodes).size, 0)
    const long = treeOf(JSON.stringify({ rows: Array.from({ length: 200 }, (_, id) => ({ id })) }))
    t.equal(visibleNodes(long, initiallyCollapsed(long)).length, 202)
  })

  t.test('search finds keys and values in any letter case', async (t) => {
    t.same(matchingNodes(nodes, 'TX-'), [3, 6])
    t.same(matchingNodes(nodes, 'id'), [3, 6])
    t.same(matchingNodes(nodes, ''), [])
  })

  t.test('a node has a path', async (t) => {
    t.equal(pathOf(nodes, 0), '')
    t.equal(pathOf(nodes, 6), 'data[1].id')
    t.equal(pathOf(nodes, 4), 'data[0]["a b"]')
  })
})
