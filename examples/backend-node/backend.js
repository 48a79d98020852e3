// A backend for Gatehouse: login, one resource, negotiation and live positions.
import { timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { createPublisher, negotiate } from 'gatehouse-backend'
import jwt from 'jsonwebtoken'

const {
  PORT = '4000',
  TOKEN_SECRET, // the gateway's API_SECRET
  REALTIME_HMAC_SECRET,
  REALTIME_API_KEY,
  REALTIME_PUBLISH_URL = 'http://127.0.0.1:8100/api',
  PASSWORD
} = process.env
const missing = Object.entries({ TOKEN_SECRET, REALTIME_HMAC_SECRET, REALTIME_API_KEY, PASSWORD })
  .filter(([, value]) => !value)
  .map(([name]) => name)
if (missing.length > 0) throw new Error(`set ${missing.join(', ')}`)

const HOUR = 3600
const FLOOR = 'f1'
const USER = { userId: '1', email: 'ada@example.com', displayName: 'Ada', role: 'user', permissions: ['carts.write'] }
const carts = [
  { id: 1, name: 'Linen', transmitterId: 'T1' },
  { id: 2, name: 'Meals', transmitterId: 'T2' }
]

const isEqual = (a, b) => a.length === b.length && timingSafeEqual(a, b)

const login = ({ email, password }) => {
  if (email !== USER.email || !isEqual(Buffer.from(String(password)), Buffer.from(PASSWORD))) return [401]
  const token = jwt.sign({ sub: USER.userId, role: USER.role }, TOKEN_SECRET, { expiresIn: HOUR })
  return [200, { token, user: USER, expiresIn: HOUR }]
}

const addCart = ({ name }) => {
  if (typeof name !== 'string' || name === '') return [400]
  const id = carts.length + 1
  carts.push({ id, name, transmitterId: `T${id}` })
  return [201, carts.at(-1)]
}

/** The gateway's address as the browser sees it: the gateway passes these connections on to the relay. */
const connection = (_body, { headers }) => {
  const scheme = headers['x-forwarded-proto'].replace('http', 'ws')
  const url = `${scheme}://${headers['x-forwarded-host']}/connection/websocket`
  return [200, negotiate({ user: USER.userId, url, secret: REALTIME_HMAC_SECRET }).data]
}

const publicRoutes = { 'GET /api/health': () => [200, { status: 'up' }], 'POST /api/auth/login': login }
const privateRoutes = {
  'GET /api/carts': () => [200, carts],
  'POST /api/carts': addCart,
  'GET /api/negotiate': connection,
  'POST /api/auth/logout': () => [200, {}]
}

/** Whether the request has a token of this backend. The gateway does not check the tokens of reads. */
const isSignedIn = ({ headers: { authorization = '' } }) => {
  try {
    return Boolean(jwt.verify(authorization.replace('Bearer ', ''), TOKEN_SECRET, { algorithms: ['HS256'] }))
  } catch {
    return false
  }
}

const bodyOf = async (request) => {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part
  return JSON.parse(text || '{}') ?? {}
}

createServer(async (request, response) => {
  const route = `${request.method} ${request.url.split('?')[0]}`
  const body = await bodyOf(request).catch(() => null)
  const isRejected = route in privateRoutes && !isSignedIn(request)
  const handler = isRejected ? () => [401] : (publicRoutes[route] ?? privateRoutes[route] ?? (() => [404]))
  const [status, data = null] = body === null ? [400] : handler(body, request)
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ success: status < 400, data }))
}).listen(Number(PORT), '127.0.0.1', () => console.log(`backend listening at http://127.0.0.1:${PORT}`))

const publisher = createPublisher({ url: REALTIME_PUBLISH_URL, apiKey: REALTIME_API_KEY, log: console })

setInterval(() => {
  const entries = carts.map(({ id, transmitterId }) => {
    const angle = Date.now() / 5000 + id
    const position = { x: 50 + 40 * Math.cos(angle), y: 50 + 40 * Math.sin(angle) }
    return { transmitterId, floorId: FLOOR, position, positionMethod: 'demo', timestamp: Date.now() }
  })
  publisher.publish(`floor:${FLOOR}`, { type: 'position-batch', data: entries })
}, 1000)
