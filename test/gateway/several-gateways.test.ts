import t from 'tap'
import { cookieJar } from '../helper/cookie-jar.js'
import { startGateway, tokenOf } from '../helper/gateway.js'
import { startBackend } from '../helper/recording-backend.js'
import { required } from '../helper/required.js'

const USER = { userId: 7, email: 'ada@example.com', displayName: 'Ada', role: 'operator' }
const JSON_TYPE = { 'content-type': 'application/json' }

/** A session whose requests alternate between gateways, as with a load balancer without sticky sessions. */
const ROUND = 3

for (const mode of ['plain', 'signed']) {
  t.test(`two independent gateways with ${mode} CSRF tokens`, async (t) => {
    const backend = await startBackend(t)
    backend.respond = ({ url }, response) => {
      const data = url === '/api/auth/login' ? { token: tokenOf('operator'), user: USER, expiresIn: 60 } : {}
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ success: true, data }))
    }
    const start = () => startGateway(t, { backend, env: { CSRF_MODE: mode, COOKIE_SECURE: 'false' } })
    const gateways = [await start(), await start()]

    t.test('two gateways serve one session in turn', async (t) => {
      for (const first of gateways.keys()) {
        const jar = cookieJar()
        let turn = first
        const sendRequest = async (method: string, path: string, body?: unknown): Promise<number> => {
          const { url } = required(gateways[turn++ % gateways.length])
          const csrf = /csrf_token=([^;]*)/.exec(jar.header)?.[1]
          const headers = { ...JSON_TYPE, ...(csrf === undefined ? {} : { 'x-csrf-token': decodeURIComponent(csrf) }) }
          const request = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
          const response = await jar.fetch(url + path, request)
          await response.arrayBuffer()
          return response.status
        }

        t.equal(await sendRequest('POST', '/api/somewhere', {}), 403, 'no CSRF token yet')
        t.equal(await sendRequest('GET', '/api/auth/csrf-token'), 200)
        t.equal(await sendRequest('POST', '/api/somewhere', {}), 401, 'the request has no session yet')
        t.equal(await sendRequest('POST', '/api/auth/login', { email: USER.email, password: 'x' }), 200)
        for (let time = 0; time < ROUND; time++) {
          t.equal(await sendRequest('POST', '/api/somewhere', { time }), 200)
          t.match(backend.requests.at(-1)?.headers, { authorization: /^Bearer ./ })
          t.equal(await sendRequest('GET', '/api/audit/entries'), 200)
        }
        t.equal(await sendRequest('GET', '/api/auth/csrf-token'), 200, 'a new one, from the other')
        t.equal(await sendRequest('POST', '/api/somewhere', {}), 200)
        t.equal(await sendRequest('POST', '/api/auth/logout'), 200)
        t.equal(await sendRequest('GET', '/api/audit/entries'), 401, 'signed out at both')
      }
    })
  })
}
