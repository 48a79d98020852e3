import t from 'tap'
import { rejectedFiles } from './biome.js'

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

const fileOf = (index: number): string => `src/gateway/statement-${index}.ts`

const rejected = rejectedFiles(
  Object.fromEntries(STATEMENTS.map(([statement], index) => [fileOf(index), `${statement}\n`])),
  'plugin'
)

for (const [index, [statement, isAllowed]] of STATEMENTS.entries()) {
  t.test(`lint ${isAllowed ? 'allows' : 'rejects'} ${statement}`, async (t) => {
    t.equal(rejected.has(fileOf(index)), !isAllowed)
  })
}

t.test('lint rejects files that import each other in a circle', async (t) => {
  const files = {
    'src/relay/a.ts': "import { b } from './b.js'\n\nexport const a = () => b\n",
    'src/relay/b.ts': "import { a } from './a.js'\n\nexport const b = () => a\n"
  }
  t.same(rejectedFiles(files, 'lint/suspicious/noImportCycles'), new Set(Object.keys(files)))
})
