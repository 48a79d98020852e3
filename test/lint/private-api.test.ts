import { readdirSync } from 'node:fs'
import { join, sep } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'
import { rejectedFiles } from './biome.js'
import { scriptOf } from './import-graph.js'

const FOLDERS = ['src', 'schemas', 'demo', 'scripts', 'bench', 'examples', 'test']

/** A decoder that its library does not export. */
const EXCEPTIONS: ReadonlySet<string> = new Set(['test/helper/fossil.ts'])

/** Parsing every file would take longer than all other rules. */
const CANDIDATE = /\b_[A-Za-z]|setFlagsFromString|\bbinding\b|getOwnPropertySymbols/
const PRIVATE_NAME = /^_[A-Za-z]/
const CALLS = /^(?:(?:.*\.)?setFlagsFromString|process\.binding|Object\.getOwnPropertySymbols)$/s

/** Private members of foreign objects and internals of Node.js. Our own classes use #private members. */
const usesPrivateApi = (text: string): boolean => {
  if (!CANDIDATE.test(text)) return false
  const visit = (node: ts.Node): boolean => isPrivateUse(node) || (ts.forEachChild(node, visit) ?? false)
  return visit(ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest, true))
}

const isPrivateUse = (node: ts.Node): boolean => {
  if (ts.isPropertyAccessExpression(node)) return PRIVATE_NAME.test(node.name.text)
  if (ts.isElementAccessExpression(node)) return isPrivateText(node.argumentExpression)
  if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent))
    return PRIVATE_NAME.test((node.propertyName ?? node.name).getText())
  if (!ts.isCallExpression(node)) return false
  const callee = node.expression.getText()
  return CALLS.test(callee) || (/^Reflect\.[gs]et$/.test(callee) && isPrivateText(node.arguments[1]))
}

const isPrivateText = (node: ts.Node | undefined): boolean =>
  node !== undefined && ts.isStringLiteralLike(node) && PRIVATE_NAME.test(node.text)

t.test('no file uses a private API of Node.js or a library', async (t) => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file))
  ).filter((file) => /\.(?:ts|vue)$/.test(file) && !file.includes(`node_modules${sep}`))
  t.ok(files.length > 1_000)
  t.same(
    files.filter((file) => !EXCEPTIONS.has(file) && usesPrivateApi(scriptOf(file))),
    []
  )
})

const STATEMENTS: readonly (readonly [statement: string, isAllowed: boolean])[] = [
  ['socket._writev()', false],
  ['socket?._writev()', false],
  ['(socket as { _httpMessage: unknown })._httpMessage', false],
  ["socket['_handle']", false],
  ['socket._handle = null', false],
  ["socket['_handle'] = null", false],
  ["Reflect.get(socket, '_handle')", false],
  ["Reflect.set(socket, '_handle', null)", false],
  ['const { _handle } = socket', false],
  ['const { _handle: handle } = socket', false],
  ["v8.setFlagsFromString('--trace-gc')", false],
  ["setFlagsFromString('--trace-gc')", false],
  ["process.binding('tcp_wrap')", false],
  ["Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'kRes')", false],
  ['socket.write(text)', true],
  ["Reflect.get(socket, 'handle')", true],
  ['const [_first, second] = list', true],
  ['list.map((_entry, index) => index)', true],
  ['socket[Symbol.asyncDispose]()', true]
]

for (const [statement, isAllowed] of STATEMENTS) {
  t.test(`the rule ${isAllowed ? 'allows' : 'rejects'} ${statement}`, async (t) => {
    t.equal(usesPrivateApi(`${statement}\n`), !isAllowed)
  })
}

t.test('lint rejects files that import each other in a circle', async (t) => {
  const files = {
    'src/relay/a.ts': "import { b } from './b.js'\n\nexport const a = () => b\n",
    'src/relay/b.ts': "import { a } from './a.js'\n\nexport const b = () => a\n"
  }
  t.same(rejectedFiles(files, 'lint/suspicious/noImportCycles'), new Set(Object.keys(files)))
})
