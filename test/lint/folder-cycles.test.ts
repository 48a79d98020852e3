import t from 'tap'
import { cycles, folderGraph, importGraph } from './import-graph.js'

const ROOTS = ['src/gateway', 'src/relay', 'src/shared', 'src/client', 'src/relay-admin', 'src/ui']

/** Folders with cycles that are still to be removed. */
const KNOWN: readonly string[] = ['api-docs', 'oidc', 'plugins', 'proxy', 'routes'].map((name) => `src/gateway/${name}`)

for (const root of ROOTS) {
  t.test(`the folders of ${root} do not import each other in a circle`, async (t) => {
    const found = cycles(folderGraph(importGraph(root)))
      .map((group) => group.map((node) => `${root}/${node}`))
      // Cycles between files are a rule of Biome.
      .filter((group) => group.some((node) => !node.endsWith('.ts')))
    t.same(
      found.filter((group) => !group.every((node) => node.endsWith('.ts') || KNOWN.includes(node))),
      []
    )
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
