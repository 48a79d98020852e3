import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { peakMebibytes, residentMebibytes } from '../harness/cpu.js'
import { median, medianRatio } from '../harness/statistics.js'
import { goalTable, table } from '../harness/table.js'
import type { Since } from './dialect.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import { KEY, RELAY, type RunningServer, SECRET, SEND_LOOP, type ServerName, startServer } from './servers.js'

export interface StormOptions {
  readonly rounds?: number | undefined
}

const SIZES = [2000, 8000] as const
const RECOVERING = 5000
const RECOVERED = 20
const AT_ONCE = 100
const SETTLE_MS = 5000

interface StormReading {
  /** CPU microseconds per client. */
  readonly cpu: number
  /** Peak of resident memory, of the value after the storm. */
  readonly peak: number
}

/** All clients connect, authenticate and subscribe to one channel of a process that has just started. */
const readStorm = async (load: Load, name: ServerName, clients: number, recovers: boolean): Promise<StormReading> => {
  const server = await startServer(name)
  const [pid = 0] = server.pids
  try {
    const since = recovers ? await publishHistory(server) : undefined
    const { value } = await measure(load, server, { ...openOrder(server, clients, 1), atOnce: AT_ONCE, since }, 'count')
    await setTimeout(SETTLE_MS)
    const reading = { cpu: value, peak: peakMebibytes(pid) / residentMebibytes(pid) }
    await closeAll(load)
    return reading
  } finally {
    await server.stop()
  }
}

/** Publishes what the clients recover. Returns the position before it. */
const publishHistory = async ({ ports: [port] }: RunningServer): Promise<Since> => {
  for (let count = 0; count <= RECOVERED; count++) {
    const response = await fetch(`http://127.0.0.1:${port}/api/publish`, {
      method: 'POST',
      headers: { 'x-api-key': KEY },
      body: `{"channel":"floor:0","data":${positionBatch()}}`
    })
    await response.text()
  }
  const socket = new WebSocket(`ws://127.0.0.1:${port}/connection/websocket`)
  await once(socket, 'open')
  const token = signJwt({ sub: 'probe' }, secretKey(SECRET), { lifetimeSeconds: 60 })
  socket.send(`{"id":1,"connect":{"token":"${token}"}}\n{"id":2,"subscribe":{"channel":"floor:0"}}`)
  for (;;) {
    const [message] = await once(socket, 'message')
    const [, epoch] = /"epoch":"([^"]+)"/.exec(String(message)) ?? []
    if (epoch === undefined) continue
    socket.terminate()
    return { epoch, offset: 1 }
  }
}

/** The cost of all clients returning at once after a restart. The servers take turns, each time with a new process. */
export const stormSuite = async ({ rounds = 5 }: StormOptions): Promise<string> => {
  const load = new Load()
  const ours = new Map<number, StormReading[]>(SIZES.map((size) => [size, []]))
  const peer = new Map<number, StormReading[]>(SIZES.map((size) => [size, []]))
  const recovering: StormReading[] = []
  const fresh: StormReading[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      for (const size of SIZES) {
        ours.get(size)?.push(await readStorm(load, RELAY, size, false))
        peer.get(size)?.push(await readStorm(load, SEND_LOOP, size, false))
      }
      recovering.push(await readStorm(load, RELAY, RECOVERING, true))
      fresh.push(await readStorm(load, RELAY, RECOVERING, false))
    }
  } finally {
    await load.stop()
  }
  const cpus = (readings: readonly StormReading[] = []): number[] => readings.map(({ cpu }) => cpu)
  const peaks = (readings: readonly StormReading[] = []): number[] => readings.map(({ peak }) => peak)
  const row = (what: string, readings: readonly StormReading[] = []): string[] => [
    what,
    median(cpus(readings)).toFixed(0),
    median(peaks(readings)).toFixed(2)
  ]
  const rows = [
    ...SIZES.flatMap((size) => [
      row(`first ${size} clients, relay`, ours.get(size)),
      row(`first ${size} clients, ${SEND_LOOP} with token check`, peer.get(size))
    ]),
    row(`first ${RECOVERING} clients, relay`, fresh),
    row(`the same, each recovers ${RECOVERED} publications`, recovering)
  ]
  return [
    '## Connect storm\n',
    `Medians of ${rounds} rounds, each with new processes; ${AT_ONCE} clients connect at the same time.\n`,
    `${table(['connect + token + subscribe', 'CPU µs/client', 'peak RSS of settled'], rows)}\n`,
    goalTable([
      ...SIZES.map((size) => ({
        what: `first ${size} clients, CPU of ${SEND_LOOP}`,
        measured: medianRatio(cpus(ours.get(size)), cpus(peer.get(size))),
        atMost: 1,
        unit: ''
      })),
      {
        what: 'peak memory of the value after the storm',
        measured: Math.max(...SIZES.map((size) => median(peaks(ours.get(size))))),
        atMost: 1.5,
        unit: ''
      },
      {
        what: 'recovery, CPU of a storm without',
        measured: medianRatio(cpus(recovering), cpus(fresh)),
        atMost: 1.3,
        unit: ''
      }
    ])
  ].join('\n')
}
