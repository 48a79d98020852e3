// The backend of the examples for React and Vue: login, orders, negotiation, and a live count of every order.
import { createServer } from 'node:http'
import { createPublisher, negotiate } from 'gatehouse-backend'
import jwt from 'jsonwebtoken'

const {
  PORT = '4000',
  API_SECRET,
  REALTIME_HMAC_SECRET,
  REALTIME_API_KEY,
  REALTIME_PUBLISH_URL = 'http://127.0.0.1:8100/api',
  PASSWORD
} = process.env

const HOUR = 3600
const users = [
  { userId: '1', email: 'ada@example.com', displayName: 'Ada', role: 'user', permissions: ['orders.write'] },
  { userId: '2', email: 'bob@example.com', displayName: 'Bob', role: 'user', permissions: [] }
]
const orders = [
  { id: 42, title: 'Tea', packed: 0 },
  { id: 43, title: 'Coffee', packed: 0 }
]

const login = (_user, { email, password }) => {
  const user = users.find((user) => user.email === email)
  if (user === undefined || password !== PASSWORD)
    return [401, { message: 'The e-mail address or the password is wrong.' }]
  const token = jwt.sign({ sub: user.userId, role: user.role }, API_SECRET, { expiresIn: HOUR })
  return [200, { success: true, data: { token, user, expiresIn: HOUR } }]
}

/** The gateway's address as the browser sees it: the gateway passes these connections on to the relay. */
const connection = ({ userId, displayName }, _body, { headers }) => {
  const scheme = headers['x-forwarded-proto'].replace('http', 'ws')
  const url = `${scheme}://${headers['x-forwarded-host']}/connection/websocket`
  return [200, negotiate({ user: userId, url, secret: REALTIME_HMAC_SECRET, info: { name: displayName } })]
}

const addOrder = (_user, { title }) => {
  if (typeof title !== 'string' || title === '') return [400, { message: 'An order needs a title.' }]
  orders.push({ id: orders.at(-1).id + 1, title, packed: 0 })
  return [201, { data: orders.at(-1) }]
}

const publicRoutes = { 'POST /api/auth/login': login, 'GET /api/health': () => [200, { status: 'up' }] }
const privateRoutes = {
  'GET /api/orders': () => [200, { data: orders }],
  'POST /api/orders': addOrder,
  'GET /api/negotiate': connection,
  'POST /api/auth/logout': () => [200, {}]
}

/** The user of the Bearer token, which the gateway makes from the session cookie. */
const userOf = ({ headers: { authorization = '' } }) => {
  try {
    const { sub } = jwt.verify(authorization.replace('Bearer ', ''), API_SECRET, { algorithms: ['HS256'] })
    return users.find(({ userId }) => userId === sub)
  } catch {
    return undefined
  }
}

const bodyOf = async (request) => {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part
  return JSON.parse(text || '{}') ?? {}
}

const respond = async (request) => {
  const route = `${request.method} ${request.url.split('?')[0]}`
  const user = userOf(request)
  if (route in privateRoutes && user === undefined) return [401, { message: 'Sign in to do this.' }]
  const handler = publicRoutes[route] ?? privateRoutes[route] ?? (() => [404, {}])
  return handler(user, await bodyOf(request), request)
}

createServer(async (request, response) => {
  const [status, body] = await respond(request).catch(() => [400, { message: 'The body is not JSON.' }])
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}).listen(Number(PORT), '127.0.0.1', () => console.log(`backend listening at http://127.0.0.1:${PORT}`))

const publisher = createPublisher({ url: REALTIME_PUBLISH_URL, apiKey: REALTIME_API_KEY, log: console })

setInterval(() => {
  for (const order of orders) {
    order.packed += 1
    publisher.publish(`orders:${order.id}`, { packed: order.packed })
  }
}, 1000)
