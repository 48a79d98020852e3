import t from 'tap'
import { cycles, folderGraph, importGraph } from './import-graph.js'

const ROOTS = ['src/gateway', 'src/relay', 'src/shared', 'src/openapi', 'src/client', 'src/relay-admin', 'src/ui']

for (const root of ROOTS) {
  t.test(`the folders of ${root} do not import each other in a circle`, async (t) => {
    const found = cycles(folderGraph(importGraph(root)))
      .map((group) => group.map((node) => `${root}/${node}`))
      // Cycles between files are a rule of Biome.
      .filter((group) => group.some((node) => !node.endsWith('.ts')))
    t.same(found, [])
  })
}

t.test('cycles finds groups of nodes that reach each other', async (t) => {
  const graph = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', ['a']],
    ['d', []]
  ])
  t.same(cycles(graph), [['a', 'b', 'c']])
})

t.test('folderGraph merges the files of a folder and keeps files of the root apart', async (t) => {
  const files = new Map([
    ['app.ts', ['proxy/forward.ts']],
    ['errors.ts', []],
    ['proxy/forward.ts', ['proxy/headers.ts', 'errors.ts']],
    ['proxy/headers.ts', []]
  ])
  t.same(
    folderGraph(files),
    new Map([
      ['app.ts', ['proxy']],
      ['errors.ts', []],
      ['proxy', ['errors.ts']]
    ])
  )
})
