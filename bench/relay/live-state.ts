import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { cpuMicroseconds } from '../harness/cpu.js'
import { SERVER_CORE } from '../harness/process.js'
import { median } from '../harness/statistics.js'
import type { Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { goalTable, roundsText, table } from '../harness/table.js'
import {
  MAPS_AND_VIEWS,
  type MapReading,
  readMapMemory,
  readMaps,
  readViews,
  type ViewReading
} from './maps-and-views.js'
import { positionBatch } from './position-batch.js'
import { KEY, RELAY_NAMESPACE, type RunningServer, SECRET } from './running-server.js'
import { RELAY, startServer } from './servers.js'

const NAMESPACE = { ...RELAY_NAMESPACE, history_ttl: '3600s', allow_max_rate: true }

const KEYS_PER_BATCH = 100
const BATCHES = 100
const LATER_SUBSCRIBERS = 50
const SUBSCRIBERS = 1000
const PUBLISHES_PER_SECOND = 20
const token = signJwt({ sub: 'reader' }, secretKey(SECRET), { lifetimeSeconds: 3600 })

const publish = async ({ ports: [port] }: RunningServer, channel: string, data: string): Promise<void> => {
  const response = await fetch(`http://127.0.0.1:${port}/api/publish`, {
    method: 'POST',
    headers: { 'x-api-key': KEY },
    body: `{"channel":"${channel}","data":${data}}`
  })
  if (!response.ok || (await response.text()).includes('"error"')) throw new Error('a publication was rejected')
}

const batchOfKeys = (from: number): string =>
  JSON.stringify({
    type: 'position-batch',
    data: Array.from({ length: KEYS_PER_BATCH }, (_, index) => ({
      transmitterId: `transmitter-${from + index}`,
      x: 12.5 + index,
      y: 40.25,
      floorId: 7,
      accuracy: 0.4,
      timestamp: new Date(1_763_200_000_000 + from + index).toISOString()
    }))
  })

const connected = async ({ ports: [port] }: RunningServer): Promise<WebSocket> => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/connection/websocket`)
  await once(socket, 'open')
  socket.send(JSON.stringify({ id: 1, connect: { token } }))
  await once(socket, 'message')
  return socket
}

/** Subscribes, and returns the time until the reply. */
const subscribe = async (socket: WebSocket, channel: string, data: object = {}): Promise<number> => {
  const startedAt = performance.now()
  socket.send(JSON.stringify({ id: 2, subscribe: { channel, data } }))
  await once(socket, 'message')
  return performance.now() - startedAt
}

interface SnapshotReading {
  readonly firstMs: number
  readonly firstCpuMs: number
  readonly laterCpuMs: number
}

/** The first subscriber of a channel with 10,000 keys, and the CPU time of further ones. */
const readSnapshots = async (server: RunningServer, channel: string): Promise<SnapshotReading> => {
  const [pid = 0] = server.pids
  for (let batch = 0; batch < BATCHES; batch++) await publish(server, channel, batchOfKeys(batch * KEYS_PER_BATCH))
  const sockets: WebSocket[] = []
  for (let count = 0; count <= LATER_SUBSCRIBERS; count++) sockets.push(await connected(server))
  const [first, ...later] = sockets
  const start = cpuMicroseconds(pid)
  const firstMs = first === undefined ? 0 : await subscribe(first, channel)
  const before = cpuMicroseconds(pid)
  for (const socket of later) await subscribe(socket, channel)
  const laterCpuMs = (cpuMicroseconds(pid) - before) / 1000 / later.length
  for (const socket of sockets) socket.terminate()
  return { firstMs, firstCpuMs: (before - start) / 1000, laterCpuMs }
}

interface FanOut {
  readonly channel: string
  readonly subscribers: number
  /** The field `data` of the subscribe requests. */
  readonly data: object
  readonly seconds: number
}

/** CPU time per second of a channel with 20 publications per second. */
const readFanOut = async (server: RunningServer, { channel, subscribers, data, seconds }: FanOut): Promise<number> => {
  const [pid = 0] = server.pids
  const sockets = await Promise.all(Array.from({ length: subscribers }, () => connected(server)))
  for (const socket of sockets) await subscribe(socket, channel, data)
  const before = cpuMicroseconds(pid)
  const batch = positionBatch()
  const startedAt = performance.now()
  for (let count = 1; count <= seconds * PUBLISHES_PER_SECOND; count++) {
    await publish(server, channel, batch)
    await setTimeout(Math.max(0, startedAt + (count * 1000) / PUBLISHES_PER_SECOND - performance.now()))
  }
  const cpuMs = (cpuMicroseconds(pid) - before) / 1000 / seconds
  for (const socket of sockets) socket.terminate()
  await setTimeout(500)
  return cpuMs
}

const withServer = async <Result>(
  namespaces: readonly object[],
  use: (server: RunningServer) => Promise<Result>
): Promise<Result> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-live-state-'))
  const config = join(folder, 'relay.json')
  writeFileSync(config, JSON.stringify({ channel: { namespaces } }))
  const server = await startServer(RELAY, SERVER_CORE, { RELAY_CONFIG: config })
  try {
    return await use(server)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The first round only warms up, except in a quick run. */
const roundsOf = ({ isQuick, rounds = isQuick ? 1 : 5 }: SuiteOptions): readonly number[] =>
  Array.from({ length: isQuick ? rounds : rounds + 1 }, (_, index) => (isQuick ? index : index - 1))

/** Snapshots of 10,000 keys, and 1,000 subscribers at full rate and at one delivery per second. */
const runSnapshots = async (options: SuiteOptions): Promise<string> => {
  const { isQuick, seconds = isQuick ? 0.5 : 5 } = options
  const rounds = roundsOf(options)
  const snapshots: SnapshotReading[] = []
  const none: number[] = []
  const full: number[] = []
  const limited: number[] = []
  await withServer([NAMESPACE], async (server) => {
    for (const round of rounds) {
      const snapshot = await readSnapshots(server, `floor:s${round}`)
      const fanOut = (name: string, subscribers: number, data: object): Promise<number> =>
        readFanOut(server, { channel: `floor:${name}${round}`, subscribers, data, seconds })
      const without = await fanOut('n', 0, {})
      const all = await fanOut('f', SUBSCRIBERS, {})
      const one = await fanOut('l', SUBSCRIBERS, { max_rate: 1 })
      if (round < 0) continue
      snapshots.push(snapshot)
      none.push(without)
      full.push(all)
      limited.push(one)
    }
  })
  const firstMs = median(snapshots.map((reading) => reading.firstMs))
  const firstCpuMs = median(snapshots.map((reading) => reading.firstCpuMs))
  const laterCpuMs = median(snapshots.map((reading) => reading.laterCpuMs))
  const [noneMs, fullMs, limitedMs] = [median(none), median(full), median(limited)]
  const rows = [
    ['first subscriber of a channel with 10,000 keys, time to the reply', `${firstMs.toFixed(1)} ms`],
    ['the same, CPU time', `${firstCpuMs.toFixed(1)} ms`],
    ['further subscriber of this channel (snapshot of 1.2 MB), CPU time', `${laterCpuMs.toFixed(2)} ms`],
    ['20 publications/s without subscribers, CPU time per second', `${noneMs.toFixed(1)} ms`],
    ['the same with 1,000 subscribers at full rate', `${fullMs.toFixed(1)} ms`],
    ['the same with 1,000 subscribers at 1 delivery/s', `${limitedMs.toFixed(1)} ms`]
  ]
  return [
    `Medians of ${roundsText(snapshots.length)}.`,
    table(['', 'relay'], rows),
    goalTable([
      { what: 'first snapshot of 10,000 keys, CPU time', measured: firstCpuMs, atMost: 20, unit: ' ms' },
      {
        // Receiving the publications is not part of the cost of the subscribers.
        what: '1,000 subscribers: CPU time at 1 delivery/s to full rate',
        measured: (limitedMs - noneMs) / (fullMs - noneMs),
        atMost: 0.1,
        unit: ''
      }
    ])
  ].join('\n\n')
}

/** Maps of 10,000 keys, and 1,000 subscribers in 16 views of a floor. */
const runMapsAndViews = async (options: SuiteOptions): Promise<string> => {
  const publications = options.isQuick ? 32 : 160
  const maps: MapReading[] = []
  const none: ViewReading[] = []
  const all: ViewReading[] = []
  const local: ViewReading[] = []
  const spread: ViewReading[] = []
  await withServer(MAPS_AND_VIEWS, async (server) => {
    for (const round of roundsOf(options)) {
      const views = (name: string, hasViews: boolean, isSpread: boolean, subscribers?: number): Promise<ViewReading> =>
        readViews(server, { channel: `plan:${name}${round}`, subscribers, hasViews, isSpread, publications })
      const map = await readMaps(server, round)
      const without = await views('n', false, false, 0)
      const everything = await views('a', false, false)
      const [inOne, inEach] = [await views('l', true, false), await views('s', true, true)]
      if (round < 0) continue
      maps.push(map)
      none.push(without)
      all.push(everything)
      local.push(inOne)
      spread.push(inEach)
    }
  })
  const memory = readMapMemory()
  const cpuOf = (readings: readonly ViewReading[]): number => median(readings.map(({ cpuMs }) => cpuMs))
  const bytesOf = (readings: readonly ViewReading[]): number => median(readings.map(({ bytes }) => bytes))
  return [
    `Medians of ${roundsText(maps.length)}.`,
    table(
      ['a publication of 16 entries to 1,000 subscribers', 'CPU time', 'bytes'],
      [
        ['no subscribers', none],
        ['everything', all],
        ['16 views, entries in one of them', local],
        ['16 views, an entry in each', spread]
      ].map(([what, readings]) => {
        const of = readings as readonly ViewReading[]
        return [String(what), `${cpuOf(of).toFixed(2)} ms`, `${(bytesOf(of) / 1000).toFixed(0)} KB`]
      })
    ),
    goalTable([
      {
        what: 'map of 10,000 keys to the first subscriber, CPU time',
        measured: median(maps.map((each) => each.firstCpuMs)),
        atMost: 25,
        unit: ' ms'
      },
      {
        what: 'the same to a further one',
        measured: median(maps.map((each) => each.againCpuMs)),
        atMost: 5,
        unit: ' ms'
      },
      {
        what: 'write to a map to publication to a stream with history, CPU time',
        measured: median(maps.map((each) => each.writeRatio)),
        atMost: 1.3,
        unit: ''
      },
      {
        // Receiving the publications is not part of the cost of the subscribers.
        what: '16 views to everything, CPU time',
        measured: (cpuOf(local) - cpuOf(none)) / (cpuOf(all) - cpuOf(none)),
        atMost: 0.15,
        unit: ''
      },
      { what: '16 views to everything, bytes', measured: bytesOf(local) / bytesOf(all), atMost: 0.15, unit: '' },
      {
        what: `memory of a key with ${memory.content.toFixed(0)} bytes of key and data`,
        measured: memory.heap,
        atMost: 1.5 * memory.content + 200,
        unit: ' bytes'
      }
    ])
  ].join('\n\n')
}

const run = async (options: SuiteOptions): Promise<SuiteResult> => ({
  blocks: [
    { name: 'live-state', markdown: await runSnapshots(options) },
    { name: 'maps-and-views', markdown: await runMapsAndViews(options) }
  ]
})

export const liveStateSuite: Suite = { blocks: ['live-state', 'maps-and-views'], run }
