import { readFileSync } from 'node:fs'
import t from 'tap'
import { clientOperations, OPERATIONS_FILE } from '../../../../scripts/client-api.js'
import { routeTables } from '../../../../src/gateway/routes/index.js'
import { operationIds } from '../../../../src/gateway/routes/operation-ids.js'
import { download, get, type RouteDeclaration } from '../../../../src/gateway/routes/tables/declare.js'
import { openPage } from '../../../helper/client-page.js'
import { memberAt } from '../../../helper/member-at.js'

const rows = routeTables.flatMap((table) => table.rows)
const ids = operationIds(rows)

/** Handled by the gateway; they do not reach the backend. */
const isOwn = ({ path, method }: RouteDeclaration): boolean =>
  method === 'GET' && /^\/api\/(?:health|auth\/csrf-token$|auth\/providers$)/.test(path)

type Call = (...args: unknown[]) => Promise<unknown>

const callNamed = (api: unknown, id: string): Call => {
  const call = memberAt(api, id.split('.'))
  if (typeof call !== 'function') throw new Error(`no call ${id}`)
  return (...args) => call(...args)
}

const argumentsFor = ({ path, kind, body }: RouteDeclaration): unknown[] => [
  ...(path.includes(':') ? ['id 7'] : []),
  ...(kind === 'upload' ? [new Blob(['a plan'])] : []),
  ...(body === null ? [] : [body.examples[0]])
]

t.test('the calls of the client', async (t) => {
  t.test('the calls match the route tables', async (t) => {
    t.equal(readFileSync(OPERATIONS_FILE, 'utf8'), await clientOperations(), 'run `npm run client-api`')
  })

  t.test('generating calls fails for an unsupported kind of route', async (t) => {
    const table = (row: RouteDeclaration) => [{ domain: 'a', about: 'A', rows: [row] }]
    await t.rejects(clientOperations(table(get('/api/a/:b/c/:d', 'Two parameters'))), /more than one parameter/)
    await t.rejects(clientOperations(table(download('/api/a/:b', 'A file of one'))), /no call for a file/)
  })

  const { api, backend, signIn } = await openPage(t)

  for (const row of rows.filter((row) => !isOwn(row))) {
    const id = ids.get(row) ?? ''
    t.test(`the call ${id} reaches the backend as declared`, async (t) => {
      // One of them signs out.
      signIn()
      backend.requests.length = 0
      await callNamed(api, id)(...argumentsFor(row))

      const [request, ...others] = backend.requests
      t.same(others, [])
      t.equal(request?.method, row.method)
      t.equal(request?.url, row.path.replace(/:\w+/, 'id%207'))
      if (row.body !== null) t.same(JSON.parse(request?.body ?? ''), row.body.examples[0])
      if (row.kind === 'upload') t.match(request?.body, 'a plan')
    })
  }

  for (const row of rows.filter(isOwn)) {
    t.test(`the call ${ids.get(row)} is handled by the gateway`, async (t) => {
      backend.requests.length = 0
      t.type(await callNamed(api, ids.get(row) ?? '')(), 'object')
      t.same(
        backend.requests.filter(({ url }) => url === row.path),
        []
      )
    })
  }
})
