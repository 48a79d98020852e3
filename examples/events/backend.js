// A backend that answers the events of the relay, with Express.
import express from 'express'
import { EventError, eventHandler, nodeListener } from 'gatehouse-backend'

const { PORT = '4100', SIGNING_SECRET } = process.env
if (!SIGNING_SECRET) throw new Error('set SIGNING_SECRET')

/** Users by the value of their session cookie, and the rooms of each user. */
const sessions = { 'ada-session': 'ada', 'bob-session': 'bob' }
const rooms = { ada: ['room:1', 'room:2'], bob: ['room:1'] }
const occupied = new Set()

/** The relay forwards the cookie, because relay.yaml lists it. */
const connect = (_event, { headers }) => {
  const [, session = ''] = /(?:^|; )session=([^;]*)/.exec(headers.get('cookie') ?? '') ?? []
  if (!Object.hasOwn(sessions, session)) throw new EventError(401, 'sign in first')
  const user = sessions[session]
  return { user, data: { greeting: `Hello ${user}` } }
}

const subscribe = ({ user, channel }) => {
  if (!rooms[user]?.includes(channel)) throw new EventError(403, 'this room is not yours')
}

const rpc = ({ user, method, data }) => {
  if (method !== 'add') throw new EventError(404, 'there is no such method')
  if (!Number.isFinite(data?.a) || !Number.isFinite(data?.b)) throw new EventError(400, 'a and b must be numbers')
  return { data: { user, sum: data.a + data.b } }
}

/** An event may arrive twice, so handling it must be idempotent. */
const state = ({ events }) => {
  for (const { channel, type } of events) {
    if (type === 'occupied') occupied.add(channel)
    else occupied.delete(channel)
  }
}

const app = express()
// Before any body parser: the signature belongs to the bytes that arrived.
for (const [name, handle] of Object.entries({ connect, subscribe, rpc, state }))
  app.post(`/relay/${name}`, nodeListener(eventHandler(name, handle, { secrets: [SIGNING_SECRET] })))
app.use(express.json())
app.get('/occupied', (_request, response) => response.json([...occupied].sort()))

app.listen(Number(PORT), '127.0.0.1', () => console.log(`backend listening at http://127.0.0.1:${PORT}`))
