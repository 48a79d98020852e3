import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'

const MAX_LINES = 350

/** Files that are tables of data, or generated. */
const TABLES: ReadonlySet<string> = new Set(['src/client/buildings/api/operations.ts'])

const linesOf = (text: string): number => text.trimEnd().split('\n').length

/** The source files below a folder that have more lines than permitted. */
const longFiles = (root: string, folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(?:ts|vue|css)$/.test(file))
    .map((file) => `${folder}/${file}`)
    .filter((file) => linesOf(readFileSync(join(root, file), 'utf8')) > MAX_LINES)

t.test(`no source file has more than ${MAX_LINES} lines, except tables`, async (t) => {
  t.same(longFiles(ROOT, 'src').toSorted(), [...TABLES].toSorted())
})

t.test('a file of 350 lines is permitted, and one of 351 lines is reported', async (t) => {
  const root = t.testdir({
    src: { 'short.ts': 'work()\n'.repeat(350), 'long.ts': 'work()\n'.repeat(351), 'long.txt': '\n'.repeat(351) }
  })
  t.same(longFiles(root, 'src'), ['src/long.ts'])
})
