import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'

const LEVELS = new Set(['info', 'warn', 'error', 'child'])
const PROGRAM_FOLDERS = ['src/gateway', 'src/relay', 'src/shared']
const LOGGER = /(?:^|[.#])log(?:ger)?$/

/**
 * Arguments and parts of them that are no object literals, as written in these files, with their fields. Parts that a caller
 * passes on have none: its own call, or the table in rejections.ts, names them.
 */
const COMPUTED: Readonly<Record<string, readonly string[]>> = {
  'gateway/start.ts setting': ['variable', 'resembles'],
  'relay/start.ts setting': ['variable', 'resembles'],
  'gateway/oidc/account-login.ts ...facts': [],
  'gateway/oidc/provider-client.ts facts': ['provider', 'hasMetadata'],
  'gateway/plugins/request-log.ts line': ['method', 'path', 'route', 'status', 'ms', 'ip'],
  'gateway/plugins/request-log.ts ...line': [],
  'gateway/plugins/request-log.ts ...(errorCode && { code: errorCode })': ['code'],
  'gateway/plugins/request-log.ts ...(origin && { origin })': ['origin'],
  'gateway/plugins/request-log.ts ...(cutShort && { cutShort })': ['cutShort'],
  'gateway/redis-connection.ts messages.up': [],
  'gateway/revocation/internal-api.ts [target.kind]: target.value': ['user', 'session'],
  'gateway/routes/csp-reports.ts ...violationOf(report)': ['directive', 'blocked', 'page', 'script', 'disposition'],
  'relay/build-http.ts ...(traceId !== null && { traceId })': ['traceId'],
  'relay/api/dispatcher.ts ...(span !== null && { traceId: span.traceId })': ['traceId'],
  'relay/delivery-probe.ts failure': ['step', 'server', 'cause'],
  'relay/proxies/event-proxy.ts ...facts': [],
  'relay/proxies/event-proxy.ts ...failure': ['reason', 'status', 'cause'],
  'relay/transport/rejections.ts ...facts': []
}

/** Written by pino, and by requests and connections that pass their fields on. */
const OTHERS = ['level', 'time', 'pid', 'hostname', 'name', 'msg', 'requestId', 'ip', 'origin']

/** The fields of every log call in the programs. */
const fieldsInSource = (): { readonly fields: ReadonlySet<string>; readonly computed: ReadonlySet<string> } => {
  const fields = new Set<string>()
  const computed = new Set<string>()
  const add = (file: ts.SourceFile, name: string, part: ts.Node): void => {
    const key = `${name} ${part.getText(file)}`
    computed.add(key)
    for (const field of COMPUTED[key] ?? []) fields.add(field)
  }
  const addCall = (
    file: ts.SourceFile,
    name: string,
    { expression: callee, arguments: given }: ts.CallExpression
  ): void => {
    const isLevel = ts.isPropertyAccessExpression(callee) && LEVELS.has(callee.name.text)
    // `log[level](…)`
    if (!isLevel && !ts.isElementAccessExpression(callee)) return
    if (!LOGGER.test(callee.expression.getText(file))) return
    // The first argument of a rate-limited log is a key, and a line without fields has only a message.
    const facts = given.find(ts.isObjectLiteralExpression) ?? given[0]
    if (facts === undefined || ts.isStringLiteralLike(facts) || ts.isTemplateExpression(facts)) return
    const parts = ts.isObjectLiteralExpression(facts) ? facts.properties : [facts]
    for (const part of parts) {
      if (ts.isObjectLiteralElement(part) && part.name !== undefined && ts.isIdentifier(part.name))
        fields.add(part.name.text)
      else add(file, name, part)
    }
  }
  for (const folder of PROGRAM_FOLDERS) {
    for (const path of readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts')) continue
      const text = readFileSync(join(ROOT, folder, path), 'utf8')
      if (!/log(?:ger)?[.[]/i.test(text)) continue
      const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
      const visit = (node: ts.Node): void => {
        ts.forEachChild(node, visit)
        if (ts.isCallExpression(node)) addCall(file, `${folder.slice('src/'.length)}/${path}`, node)
      }
      visit(file)
    }
  }
  return { fields, computed }
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

t.test('the operating page documents every log field of both programs once', async (t) => {
  const documented = documentedFields()
  const { fields, computed } = fieldsInSource()
  t.same([...computed].toSorted(), Object.keys(COMPUTED).toSorted(), 'fields that the source does not name are listed')
  t.ok(fields.size > 30)
  t.same(
    [...fields].filter((field) => !documented.includes(field)),
    []
  )
  t.same(
    documented.filter((field) => !fields.has(field) && !OTHERS.includes(field)),
    [],
    'every documented field is used'
  )
  t.same(documented.length, new Set(documented).size)
})
