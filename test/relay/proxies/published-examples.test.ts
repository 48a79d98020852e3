import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { isObject } from '../../../src/shared/is-object.js'
import { type EventBackend, type EventRequest, startEventBackend } from '../../helper/event-backend.js'
import { collect, connectClient, event, officialClient, startRelay, subscribeTo } from '../../helper/relay.js'

// A chat of an application with sessions, in the form in which Centrifugo's pages for Node.js teach its proxies: the session cookie
// identifies the user, and the application decides about rooms and messages. The official client is unchanged.

interface Session {
  readonly user: string
  readonly rooms: readonly string[]
}

const sessions = new Map<string, Session>()

const signIn = (user: string, ...rooms: string[]): string => {
  const id = randomUUID()
  sessions.set(id, { user, rooms })
  return `connect.sid=${id}`
}

const sessionOf = ({ headers }: EventRequest): Session | undefined =>
  sessions.get(/connect\.sid=([^;]+)/.exec(headers.cookie ?? '')?.[1] ?? '')

const LIFETIME_SECONDS = 60
const expiry = (): number => Math.floor(Date.now() / 1000) + LIFETIME_SECONDS

const startApplication = async (t: Test): Promise<EventBackend> => {
  const app = await startEventBackend(t)

  app.on('connect', (request) => {
    const session = sessionOf(request)
    if (session === undefined) return { disconnect: { code: 4501, reason: 'unauthorized' } }
    return {
      result: {
        user: session.user,
        expire_at: expiry(),
        info: { name: session.user.toUpperCase() },
        data: { welcome: session.user },
        channels: [`news:${session.user}`]
      }
    }
  })

  app.on('refresh', (request) => ({
    result: sessionOf(request) === undefined ? { expired: true } : { expire_at: expiry() }
  }))

  app.on('subscribe', (request) => {
    const isMember = sessionOf(request)?.rooms.includes(String(request.body.channel)) ?? false
    return isMember ? { result: {} } : { error: { code: 1403, message: 'not a member of this room' } }
  })

  app.on('publish', ({ body: { user, data } }) => {
    const text = isObject(data) && typeof data.text === 'string' ? data.text.trim() : ''
    if (text === '') return { error: { code: 1400, message: 'empty message' } }
    return { result: { data: { text, author: user } } }
  })

  app.on('rpc', ({ body: { method } }) =>
    method === 'getCurrentYear'
      ? { result: { data: { year: new Date().getFullYear() } } }
      : { error: { code: 1404, message: 'unknown method' } }
  )
  return app
}

/** A browser would send the cookie itself. */
const withCookie = (cookie: string) =>
  class extends WebSocket {
    constructor(address: string) {
      super(address, { headers: { cookie } })
    }
  }

t.test('the chat of an application with sessions works with the proxies of its backend', async (t) => {
  const app = await startApplication(t)
  const proxy = (event: string) => ({
    endpoint: app.endpoint(event),
    timeout: '30s',
    http_headers: ['Cookie']
  })
  const edge = await startRelay(t, {
    client: {
      proxy: { connect: { enabled: true, ...proxy('connect') }, refresh: { enabled: true, ...proxy('refresh') } }
    },
    channel: {
      proxy: { subscribe: proxy('subscribe'), publish: proxy('publish') },
      namespaces: [{ name: 'rooms', subscribe_proxy_enabled: true, publish_proxy_enabled: true }, { name: 'news' }]
    },
    rpc: { proxy: proxy('rpc'), without_namespace: { proxy_enabled: true } }
  })
  const client = (cookie: string) =>
    officialClient(t, edge, 'websocket', { getToken: null, websocket: withCookie(cookie) })

  const stranger = client('connect.sid=unknown')
  const refused = event(stranger, 'disconnected')
  stranger.connect()
  t.match(await refused, { code: 4501, reason: 'unauthorized' })

  const ada = client(signIn('ada', 'rooms:math'))
  const welcomed = event(ada, 'connected')
  const news = event<{ channel: string; data: unknown }>(ada, 'publication')
  ada.connect()
  t.match(await welcomed, { data: { welcome: 'ada' } })
  await edge.publish('news:ada', 'hello')
  t.match(await news, { channel: 'news:ada', data: 'hello' })

  const room = await subscribeTo(ada, 'rooms:math')
  const received = collect(room)
  const forbidden = ada.newSubscription('rooms:poetry')
  const denied = event(forbidden, 'unsubscribed')
  forbidden.subscribe()
  t.match(await denied, { code: 1403, reason: 'not a member of this room' })

  await ada.publish('rooms:math', { text: ' hi ' })
  await received.until((publications) => publications.length === 1)
  t.same(received.data, [{ text: 'hi', author: 'ada' }])
  t.match(received.publications[0]?.info, { user: 'ada', connInfo: { name: 'ADA' } })
  await t.rejects(ada.publish('rooms:math', { text: ' ' }), { code: 1400, message: 'empty message' })

  t.match(await ada.rpc('getCurrentYear', {}), { data: { year: Number } })
  await t.rejects(ada.rpc('other', {}), { code: 1404 })

  const bob = await connectClient(client(signIn('bob')))
  sessions.clear()
  const [adaLeft, bobLeft] = [event(ada, 'disconnected'), event(bob, 'disconnected')]
  edge.advance((LIFETIME_SECONDS + 1) * 1000)
  t.match(await Promise.all([adaLeft, bobLeft]), [{ code: 4501 }, { code: 4501 }], 'signed out: refresh, then connect')
})
