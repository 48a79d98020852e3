import t from 'tap'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { sendRaw } from '../../helper/http.js'

// Below a declared path but not declared: the backend decides, without a schema.
const BELOW: readonly (readonly [method: string, path: string])[] = [
  ['POST', '/api/mgmt/beacons/1/x'],
  ['PUT', '/api/mgmt/departments/1/members/2'],
  ['DELETE', '/api/mgmt/zone-types/1/icon'],
  ['PUT', '/api/mgmt/settings/other'],
  ['PATCH', '/api/mgmt/settings/ble/advanced'],
  ['POST', '/api/zones/7/photos'],
  ['PUT', '/api/users/7/roles/3'],
  ['DELETE', '/api/dashboard/floors/7/notes']
]

t.test('the catch-all', async (t) => {
  const gateway = await startGateway(t, { hasAllRoutes: true })
  const { send, backend } = gateway
  t.beforeEach(() => {
    backend.requests.length = 0
  })

  for (const [method, path] of BELOW) {
    const body = '{"whatever" : 1}'
    const json = { 'content-type': 'application/json' }

    t.test(`the catch-all forwards ${method} ${path} unchanged`, async (t) => {
      t.equal((await send(path, { method, headers: { ...browserHeaders(), ...json }, body })).status, 200)
      t.match(backend.requests, [{ method, url: path, body }])
    })

    t.test(`the catch-all checks ${method} ${path} like a declared route`, async (t) => {
      t.equal((await send(path, { method, headers: json, body })).code, 'CSRF_MISMATCH')
      t.equal(
        (await send(path, { method, headers: { ...browserHeaders(null), ...json }, body })).code,
        'UNAUTHENTICATED'
      )
      t.same(backend.requests, [])
    })
  }

  for (const path of ['', '/ble', '/alerts', '/general'].map((page) => `/api/mgmt/settings${page}`)) {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      t.test(`${method} ${path} does not reach the catch-all`, async (t) => {
        const headers = { ...browserHeaders(), 'content-type': 'application/json' }
        t.equal((await send(path, { method, headers, body: '[]' })).code, 'VALIDATION_FAILED')
        t.same(backend.requests, [])
      })
    }
  }

  t.test('the catch-all does not wait for the body of OPTIONS', async (t) => {
    const { url, backend } = await startGateway(t, { hasAllRoutes: true })
    const head =
      'OPTIONS /api/unknown HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n'

    const response = await sendRaw(url, `${head}abc`)

    t.equal(response.status, 200)
    t.match(backend.requests, [{ method: 'OPTIONS', url: '/api/unknown', body: '' }])
  })
})
