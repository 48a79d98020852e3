import { createServer } from 'node:http'
import { createPublisher, negotiate } from 'gatehouse-backend'
import jwt from 'jsonwebtoken'

const { PORT, PASSWORD, API_SECRET } = process.env
const { REALTIME_API_KEY, REALTIME_HMAC_SECRET, REALTIME_PUBLISH_URL } = process.env
const user = { userId: '1', email: 'ada@example.com', displayName: 'Ada', role: 'user' }
const order = { id: 42, items: 0 }
const relay = createPublisher({ url: REALTIME_PUBLISH_URL, apiKey: REALTIME_API_KEY, log: console })

const addItems = (count) => {
  order.items += count
  relay.publish('orders:42', order) // every open page receives it
  return [200, order]
}
// The address that the browser uses: the gateway, or a development server in front of it.
const liveUrl = ({ 'x-forwarded-proto': scheme, 'x-forwarded-host': host }) =>
  `${scheme.replace('http', 'ws')}://${host}/connection/websocket`
const token = () => jwt.sign({ sub: user.userId, role: user.role }, API_SECRET, { expiresIn: '1h' })
const routes = {
  'POST /api/auth/login': ({ email, password }) =>
    email === user.email && password === PASSWORD ? [200, { token: token(), user }] : [401, 'Wrong email or password'],
  'POST /api/auth/logout': () => [200, null],
  'GET /api/negotiate': (_body, headers) => [
    200,
    negotiate({ user: user.userId, url: liveUrl(headers), secret: REALTIME_HMAC_SECRET }).data
  ],
  'GET /api/orders/42': () => [200, order],
  'POST /api/orders/42/items': ({ count }) => addItems(count)
}

createServer(async (request, response) => {
  let text = ''
  for await (const part of request) text += part
  // The gateway has checked session, CSRF token and body. If others can reach this port, verify the Bearer token too.
  const route = routes[`${request.method} ${request.url}`] ?? (() => [404, 'Not found'])
  const [status, data] = route(JSON.parse(text || '{}'), request.headers)
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(status < 400 ? { success: true, data } : { success: false, message: data }))
}).listen(PORT, '127.0.0.1')
setInterval(addItems, 1000, 1)
