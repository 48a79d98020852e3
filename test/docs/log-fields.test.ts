import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'

const LEVELS = new Set(['info', 'warn', 'error', 'child'])
const PROGRAM_FILE = /^src\/(?:gateway|relay|shared)\//
const LOGGER = /(?:^|[.#])log(?:ger)?$/

/** Every field of a log call in the programs, with the files that use it. Fields whose names are not in the type are omitted. */
const fieldsInSource = (): ReadonlyMap<string, readonly string[]> => {
  const config = join(ROOT, 'tsconfig.build.json')
  const { options, fileNames } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(config, (path) => readFileSync(path, 'utf8')).config,
    ts.sys,
    ROOT
  )
  const programFiles = fileNames.filter((file) => PROGRAM_FILE.test(relative(ROOT, file)))
  const program = ts.createProgram(programFiles, options)
  const checker = program.getTypeChecker()
  const fields = new Map<string, string[]>()
  for (const file of program.getSourceFiles()) {
    const path = relative(ROOT, file.fileName)
    if (!PROGRAM_FILE.test(path)) continue
    const visit = (node: ts.Node): void => {
      ts.forEachChild(node, visit)
      if (!ts.isCallExpression(node)) return
      const { expression: callee } = node
      const isLevel = ts.isPropertyAccessExpression(callee) && LEVELS.has(callee.name.text)
      // `log[level](…)`
      if (!isLevel && !ts.isElementAccessExpression(callee)) return
      const [facts] = node.arguments
      if (!LOGGER.test(callee.expression.getText(file)) || facts === undefined) return
      const type = checker.getTypeAtLocation(facts)
      for (const each of type.isUnion() ? type.types : [type]) {
        if ((each.flags & ts.TypeFlags.Object) === 0) continue
        for (const { name: field } of checker.getPropertiesOfType(each))
          fields.set(field, [...(fields.get(field) ?? []), path])
      }
    }
    visit(file)
  }
  return fields
}

/** The rows of the table below the heading "Log fields". */
const documentedFields = (): readonly string[] => {
  const page = readFileSync(join(ROOT, 'docs/reference/operating.md'), 'utf8')
  const section = page.slice(page.indexOf('### Log fields'))
  const table = section.slice(0, section.indexOf('\n## '))
  return [...table.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/\w+/g)].map(([name]) => name)
  )
}

/** Written by pino, and fields of lists or of a rate-limited log, which the type of the call does not name. */
const NOT_IN_TYPES = [
  ...['level', 'time', 'pid', 'hostname', 'name', 'msg', 'requestId', 'ip', 'origin'],
  ...['event', 'proxy']
]

t.test('the operating page documents every log field of both programs once', async (t) => {
  const documented = documentedFields()
  const used = fieldsInSource()
  t.ok(used.size > 30)
  const undocumented = [...used].filter(([field]) => !documented.includes(field))
  t.same(undocumented, [])
  t.same(
    documented.filter((field) => !used.has(field) && !NOT_IN_TYPES.includes(field)),
    [],
    'every documented field is used'
  )
  t.same(documented.length, new Set(documented).size)
})
