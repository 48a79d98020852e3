import type { Test } from 'tap'
import { startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { startTcpProxy } from '../../helper/tcp-proxy.js'

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'chat',
        allow_subscribe_for_client: true,
        allow_publish_for_subscriber: true,
        allow_presence_for_subscriber: true,
        allow_history_for_subscriber: true,
        presence: true,
        history_size: 100,
        history_ttl: '60s',
        force_recovery: true
      }
    ]
  }
}

/** Starting an interpreter may take long on a busy machine. */
const WITHIN_MS = 100_000

/** Seconds until the SDK has to refresh its connection. */
const SHORT_LIFETIME_SECONDS = 3

/**
 * Runs a program that uses an official SDK. Its last arguments are the address, the channel and the tokens, which it uses one
 * after the other. It prints an event per line as JSON. After the first publication it publishes `{"n":2}` and reads history
 * and presence.
 */
export const checkSdk = async (t: Test, command: string, args: readonly string[]): Promise<void> => {
  const { port, publish } = await startRelay(t, FILE)
  const proxy = await startTcpProxy(t, port)
  const tokens = [
    relayToken({ sub: '42' }, { nowMs: Date.now() - 60_000, lifetimeSeconds: 1 }),
    relayToken({ sub: '42' }, { lifetimeSeconds: SHORT_LIFETIME_SECONDS }),
    relayToken({ sub: '42' })
  ]
  const program = await startChild(
    t,
    command,
    [...args, `ws://127.0.0.1:${proxy.port}/connection/websocket`, 'chat:1', ...tokens],
    { PATH: environment.path }
  )
  const events = (name: string): Record<string, unknown>[] =>
    program.stdout
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line): Record<string, unknown> => JSON.parse(line))
      .filter(({ event }) => event === name)
  const until = (pattern: RegExp): Promise<string> => program.waitForLine(pattern, WITHIN_MS)

  await until(/"event": ?"subscribed"/)
  await publish('chat:1', { n: 1 })
  await until(/"event": ?"publication".*"n": ?1\b/)
  await until(/"event": ?"publication".*"n": ?2\b/)
  await until(/"event": ?"presence"/)
  t.match(events('history'), [{ data: [{ n: 1 }, { n: 2 }] }])
  t.match(events('presence'), [{ users: ['42'] }])

  // The first token has expired, the second is refreshed before it does.
  await until(/"event": ?"token", ?"count": ?3\b/)
  const reconnect = proxy.block('GET /connection/websocket')
  await until(/"event": ?"(?:connecting|disconnected)", ?"code": ?1\b/)
  await publish('chat:1', { n: 3 })
  await publish('chat:1', { n: 4 })
  reconnect()
  await until(/"recovered": ?true, ?"wasRecovering": ?true/)
  await until(/"event": ?"publication".*"n": ?4\b/)
  await publish('chat:1', { n: 5 })
  await until(/"event": ?"publication".*"n": ?5\b/)
  t.same(
    events('publication').map(({ data, offset }) => ({ data, offset })),
    [1, 2, 3, 4, 5].map((n) => ({ data: { n }, offset: n }))
  )
}
