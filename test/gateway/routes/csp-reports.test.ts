import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'

const REPORT = {
  'csp-report': {
    'document-uri': 'https://app.example.com/floors?token=s3cret',
    'effective-directive': 'connect-src',
    'blocked-uri': 'wss://evil.example/x?token=s3cret#s3cret',
    'source-file': 'data:text/javascript,s3cret',
    disposition: 'report',
    'original-policy': 's3cret'
  }
}

const report = ({ send }: TestGateway, body: unknown = REPORT, type = 'application/csp-report') =>
  send('/csp-reports', {
    method: 'POST',
    headers: { 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body)
  })

const violations = ({ logs }: TestGateway) => logs.filter(({ msg }) => msg === 'content security policy violation')

t.test('a report of a browser is logged without queries and contents', async (t) => {
  const gateway = await startGateway(t, { env: { CSP_MODE: 'report-only' } })
  const response = await report(gateway)
  t.equal(response.status, 204)
  t.equal(response.headers['cache-control'], 'no-store')
  t.match(violations(gateway), [
    {
      level: 40,
      directive: 'connect-src',
      blocked: 'wss://evil.example/x',
      page: 'https://app.example.com/floors',
      script: 'data:',
      disposition: 'report',
      suppressed: 0
    }
  ])
  t.notMatch(JSON.stringify(gateway.logs), 's3cret')
})

t.test('many reports are logged at most once a second, with the number of the others', async (t) => {
  const gateway = await startGateway(t, { env: { CSP_MODE: 'hardened' } })
  const startedAt = performance.now()
  for (let count = 0; count < 50; count += 1) t.equal((await report(gateway)).status, 204)
  const maximum = 1 + Math.floor((performance.now() - startedAt) / 1000)
  t.ok(violations(gateway).length <= maximum, `${violations(gateway).length} lines, at most ${maximum}`)

  let sent = 50
  await eventually(async () => {
    sent += 1
    await report(gateway)
    return violations(gateway).length > maximum
  })
  const lines = violations(gateway)
  const suppressed = lines.reduce((sum, line) => sum + Number(line.suppressed), 0)
  t.ok(lines.length + suppressed <= sent && suppressed > 0, `${lines.length} lines and ${suppressed} of ${sent}`)
})

t.test('a malformed report is rejected and not logged', async (t) => {
  const gateway = await startGateway(t, { env: { CSP_MODE: 'hardened' } })
  const CASES: readonly (readonly [body: unknown, type: string, status: number])[] = [
    ['{', 'application/csp-report', 400],
    ['', 'application/csp-report', 400],
    ['[]', 'application/csp-report', 400],
    [{ 'csp-report': 'x' }, 'application/csp-report', 400],
    [REPORT, 'application/json', 415],
    [REPORT, 'text/plain', 415],
    [{ 'csp-report': { 'blocked-uri': 'x'.repeat(20_000) } }, 'application/csp-report', 413]
  ]
  for (const [body, type, status] of CASES) t.equal((await report(gateway, body, type)).status, status)
  t.same(violations(gateway), [])
  t.equal((await gateway.send('/csp-reports')).status, 404)
})

t.test('values of other types and long values in a report are left out or cut', async (t) => {
  const gateway = await startGateway(t, { env: { CSP_MODE: 'hardened' } })
  const body = {
    'csp-report': { 'blocked-uri': { a: 1 }, 'document-uri': `https://${'x'.repeat(5000)}`, disposition: 5 }
  }
  t.equal((await report(gateway, body)).status, 204)
  const [line] = violations(gateway)
  t.match(line, { blocked: null, directive: null, disposition: null })
  t.ok(JSON.stringify(line).length < 600)
})

t.test('the address for reports does not exist with the standard policy', async (t) => {
  t.equal((await report(await startGateway(t))).status, 404)
})
