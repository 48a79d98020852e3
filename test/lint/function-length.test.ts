import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'

const MAX_LINES = 70

/** Functions that are tables of data: `file name`. */
const TABLES: ReadonlySet<string> = new Set([
  'src/client/buildings/api/operations.ts operations',
  'src/relay/metrics/definitions.ts defineMetrics'
])

/** The functions of a TypeScript text that are longer than permitted, by name or first line. */
const longFunctions = (file: string, text: string): string[] => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const lineAt = (position: number): number => source.getLineAndCharacterOfPosition(position).line + 1
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && lineAt(node.getEnd()) - lineAt(node.getStart()) >= MAX_LINES) {
      const named = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : null)
      found.push(`${file} ${named?.getText() ?? `line ${lineAt(node.getStart())}`}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

t.test(`no function of src has more than ${MAX_LINES} lines, except tables`, async (t) => {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts')
  )
  const found = files.flatMap((file) => longFunctions(`src/${file}`, readFileSync(join(ROOT, 'src', file), 'utf8')))

  t.same(found.toSorted(), [...TABLES].toSorted())
})

t.test('a function of 70 lines is permitted, and one of 71 lines is reported with its name', async (t) => {
  const lines = (count: number): string => 'work()\n'.repeat(count)

  t.same(longFunctions('a.ts', `const short = () => {\n${lines(68)}}`), [])
  t.same(longFunctions('a.ts', `const long = () => {\n${lines(69)}}`), ['a.ts long'])
  t.same(longFunctions('a.ts', `class A {\n  method() {\n${lines(69)}}}`), ['a.ts method'])
  t.same(longFunctions('a.ts', `\nregister(async () => {\n${lines(69)}})`), ['a.ts line 2'])
})
