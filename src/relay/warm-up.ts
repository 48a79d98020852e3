import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { WebSocket } from 'ws'
import { secretKey, signJwt } from '../shared/jwt.js'
import { createLogger } from '../shared/logger.js'
import { buildRelayApp } from './app.js'
import { LISTEN_SETTINGS, relayConfig } from './config/config.js'
import { listen } from './transport/server.js'

/** Each client delays the start by one to two milliseconds. */
const CLIENTS = 400
const CONCURRENT_CLIENTS = 20
const MAX_MS = 3000
const CHANNEL = 'floor:warm-up'

/**
 * After a restart all clients return at once, when V8 has compiled no code yet and each of them costs twice as much as later.
 * This function connects clients to a second relay in this process and closes it again. The second relay has its own
 * engine, metrics, limits and port, so nothing of it is visible. A failure only makes the first clients more expensive.
 */
export const warmUp = async (log: Logger, monotonicMs: () => number): Promise<void> => {
  const startedAt = monotonicMs()
  try {
    const clients = await connectClients()
    log.debug({ clients, durationMs: Math.round(monotonicMs() - startedAt) }, 'warm-up finished')
  } catch (error) {
    log.warn({ err: error }, 'warm-up failed')
  }
}

/** Returns the number of clients, which is lower if the time was over. */
const connectClients = async (): Promise<number> => {
  const [secret, key] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  const config = relayConfig({ REALTIME_HMAC_SECRET: secret, REALTIME_API_KEY: key }, () => '{}')
  const { server, close, closeConnections } = await buildRelayApp(
    { ...config, shutdownMs: 0 },
    { log: createLogger({ name: 'warm-up', level: 'silent' }), version: 'warm-up', hasProcessMetrics: false }
  )
  let isOver = false
  const timer = setTimeout(() => {
    isOver = true
    closeConnections()
  }, MAX_MS)
  let clients = 0
  const connectSome = async (port: number, token: string): Promise<void> => {
    for (let next = 0; next < CLIENTS / CONCURRENT_CLIENTS && !isOver; next++) {
      await connectClient(port, token)
      clients += 1
    }
  }
  try {
    const { port } = await listen(server, { host: '127.0.0.1', port: 0 }, LISTEN_SETTINGS)
    const token = signJwt({ sub: 'warm-up' }, secretKey(secret), { lifetimeSeconds: 60 })
    await Promise.all(Array.from({ length: CONCURRENT_CLIENTS }, () => connectSome(port, token)))
  } catch (error) {
    if (!isOver) throw error
  } finally {
    clearTimeout(timer)
    closeConnections()
    await close()
  }
  return clients
}

/** Connects, subscribes and disconnects. */
const connectClient = (port: number, token: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/connection/websocket`, { perMessageDeflate: false })
    socket.on('open', () => {
      socket.send(`{"id":1,"connect":{"token":"${token}","name":"js"}}\n{"id":2,"subscribe":{"channel":"${CHANNEL}"}}`)
    })
    socket.on('message', (message) => {
      if (!String(message).includes('"id":2')) return
      resolve()
      socket.terminate()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection was closed')))
  })
