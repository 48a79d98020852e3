import t from 'tap'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { startBackend } from '../../helper/recording-backend.js'

const STRIP = { BACKEND_STRIP_API_PREFIX: 'true' }

t.test('with BACKEND_STRIP_API_PREFIX, the backend receives paths without /api', async (t) => {
  const { send, backend } = await startGateway(t, { env: STRIP })
  const json = { ...browserHeaders(), 'content-type': 'application/json' }

  await send('/api/zones?floor=1')
  await send('/api/unknown/path/?x=/api/')
  await send('/api/zones', { method: 'POST', headers: json, body: '{"name":"Lobby"}' })
  await send('/api/auth/login', { method: 'POST', headers: json, body: '{"email":"a@example.com","password":"x"}' })
  await send('/api/health/ready')

  t.same(
    backend.requests.map(({ method, url }) => `${method} ${url}`),
    ['GET /zones?floor=1', 'GET /unknown/path/?x=/api/', 'POST /zones', 'POST /auth/login', 'GET /health']
  )
})

t.test('with BACKEND_STRIP_API_PREFIX, the path of BACKEND_URL is kept', async (t) => {
  const backend = await startBackend(t)
  const { send } = await startGateway(t, { backend, env: { ...STRIP, BACKEND_URL: `${backend.url}/v1/` } })

  await send('/api/zones')
  t.equal(backend.requests[0]?.url, '/v1/zones')
})

t.test('with BACKEND_STRIP_API_PREFIX, a Location of the backend leads back below /api', async (t) => {
  const { send, backend } = await startGateway(t, { env: STRIP })
  const LOCATIONS: readonly (readonly [string, string])[] = [
    ['/zones/7', '/api/zones/7'],
    [`${backend.url}/zones/7?x=1`, '/api/zones/7?x=1'],
    ['/api/zones/7', '/api/zones/7'],
    ['zones/7', 'zones/7'],
    ['https://other.example/zones', 'https://other.example/zones']
  ]
  for (const [from, to] of LOCATIONS) {
    backend.respond = (_request, response) => void response.writeHead(302, { location: from }).end()
    t.equal((await send('/api/zones')).headers.location, to, from)
  }
})
