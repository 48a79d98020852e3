import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { importGraph } from './import-graph.js'

const isOfBuildings = (file: string): boolean => file.startsWith('buildings/')

t.test('the neutral client neither imports src/client/buildings nor names its channels', async (t) => {
  const files = [...importGraph('src/client')].filter(([file]) => !isOfBuildings(file))
  t.ok(files.length > 30)
  t.same(
    files.filter(([, imports]) => imports.some(isOfBuildings)).map(([file]) => file),
    []
  )
  t.same(
    files
      .map(([file]) => file)
      .filter((file) => /floor:|global:all/.test(readFileSync(join(ROOT, 'src/client', file), 'utf8'))),
    []
  )
})
