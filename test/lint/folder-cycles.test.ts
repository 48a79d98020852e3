import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { cycles, folderGraph, importGraph } from './import-graph.js'

/** Folders whose files may import each other in a circle, types included. A comment in the named file gives the reason. */
const CIRCULAR: ReadonlyMap<string, string> = new Map([
  ['src/relay/core/fan-out', 'subscription.ts'],
  ['src/relay/core/session', 'context.ts']
])

const ROOTS = ['gateway', 'relay', 'shared', 'openapi', 'client', 'backend', 'cli', 'relay-admin', 'ui'].map(
  (folder) => `src/${folder}`
)

for (const root of ROOTS) {
  t.test(`the folders of ${root} do not import each other in a circle`, async (t) => {
    const found = cycles(folderGraph(importGraph(root)))
      .map((group) => group.map((node) => `${root}/${node}`))
      // Cycles between files are a rule of Biome.
      .filter((group) => group.some((node) => !node.endsWith('.ts')))
    t.same(found, [])
  })
}

const isExplained = (group: readonly string[]): boolean => {
  const [folder = '', ...others] = new Set(group.map((file) => dirname(file)))
  return others.length === 0 && group.includes(`${folder}/${CIRCULAR.get(folder)}`)
}

for (const root of ROOTS) {
  t.test(`files of ${root} import each other in a circle, types included, only where a comment says why`, async (t) => {
    const found = cycles(importGraph(root)).map((group) => group.map((file) => `${root}/${file}`))
    t.same(
      found.filter((group) => !isExplained(group)),
      []
    )
  })
}

for (const [folder, file] of CIRCULAR) {
  t.test(`a comment in ${folder}/${file} explains the circle of imports`, async (t) => {
    t.match(readFileSync(join(ROOT, folder, file), 'utf8'), /\/\/ Circle of imports: /)
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
