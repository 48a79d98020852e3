import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { cpuMicroseconds } from '../harness/cpu.js'
import { KEY, type RunningServer, SECRET } from './running-server.js'

/** Namespaces of this part of the benchmark. */
export const MAPS_AND_VIEWS = [
  {
    name: 'fleet',
    subscription_type: 'map',
    allow_subscribe_for_client: true,
    map: { mode: 'persistent', max_page_size: 1000 }
  },
  { name: 'stream', history_size: 100, history_ttl: '60s', force_recovery: true },
  {
    name: 'plan',
    allow_subscribe_for_client: true,
    history_size: 100,
    history_ttl: '3600s',
    conflate: 'data[].id',
    snapshot: true,
    view_x: 'x',
    view_y: 'y',
    view_cell: 10
  }
]

const KEYS = 10_000
const PAGE = 1000
const COMMANDS_PER_BATCH = 500
const SUBSCRIBERS = 1000
/** Views on each side of the floor, each of one cell. */
const SIDE = 4
const ENTRIES = 16
const token = signJwt({ sub: 'reader' }, secretKey(SECRET), { lifetimeSeconds: 3600 })

const api = async ({ ports: [port] }: RunningServer, method: string, body: object): Promise<void> => {
  const response = await fetch(`http://127.0.0.1:${port}/api/${method}`, {
    method: 'POST',
    headers: { 'x-api-key': KEY },
    body: JSON.stringify(body)
  })
  if (!response.ok || (await response.text()).includes('"error"')) throw new Error(`${method} was rejected`)
}

const connected = async ({ ports: [port] }: RunningServer): Promise<WebSocket> => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/connection/websocket`)
  await once(socket, 'open')
  socket.send(JSON.stringify({ id: 1, connect: { token } }))
  await once(socket, 'message')
  return socket
}

const position = (index: number): object => ({
  x: 12.5 + index,
  y: 40.25,
  floorId: 7,
  accuracy: 0.4,
  at: 1_763_200_000_000 + index
})

const cpuOf = async ({ pids: [pid = 0] }: RunningServer, work: () => Promise<unknown>): Promise<number> => {
  const before = cpuMicroseconds(pid)
  await work()
  return (cpuMicroseconds(pid) - before) / 1000
}

/** CPU time of 10,000 writes in batches. */
const write = (server: RunningServer, command: (index: number) => object): Promise<number> =>
  cpuOf(server, async () => {
    for (let from = 0; from < KEYS; from += COMMANDS_PER_BATCH)
      await api(server, 'batch', {
        commands: Array.from({ length: COMMANDS_PER_BATCH }, (_, index) => command(from + index))
      })
  })

/** Loads all entries of a map. */
const load = async (socket: WebSocket, channel: string): Promise<void> => {
  let request: object = { phase: 2 }
  for (;;) {
    socket.send(JSON.stringify({ id: 2, subscribe: { channel, type: 1, limit: PAGE, ...request } }))
    const [data] = await once(socket, 'message')
    // Only the fields after the entries are needed.
    const { subscribe } = JSON.parse(String(data)) as { subscribe: { phase?: number; [field: string]: unknown } }
    const { phase, cursor, offset, epoch } = subscribe
    if (phase === undefined) return
    request = { phase: cursor === undefined ? 1 : 2, cursor, offset, epoch }
  }
}

export interface MapReading {
  readonly firstCpuMs: number
  readonly againCpuMs: number
  /** CPU time of a write to a map to that of a publication to a stream. */
  readonly writeRatio: number
}

const LATER = 10

export const readMaps = async (server: RunningServer, round: number): Promise<MapReading> => {
  const publish = (index: number): object => ({ publish: { channel: `stream:${round}`, data: position(index) } })
  const writeTo = (channel: string) => (index: number) => ({
    map_publish: { channel, key: `transmitter-${index}`, data: position(index) }
  })
  const channel = `fleet:${round}`
  await write(server, writeTo(channel))
  // Both in turn, and changes of existing keys.
  const toStream = (await write(server, publish)) + (await write(server, publish))
  const toMap = (await write(server, writeTo(channel))) + (await write(server, writeTo(channel)))
  const sockets: WebSocket[] = []
  for (let count = 0; count <= LATER; count++) sockets.push(await connected(server))
  const [first, ...later] = sockets
  const firstCpuMs = await cpuOf(server, async () => first !== undefined && load(first, channel))
  const againCpuMs = await cpuOf(server, async () => {
    for (const socket of later) await load(socket, channel)
  })
  for (const socket of sockets) socket.terminate()
  return { firstCpuMs, againCpuMs: againCpuMs / later.length, writeRatio: toMap / toStream }
}

export interface ViewReading {
  readonly cpuMs: number
  readonly bytes: number
}

const cellOf = (index: number): { readonly x: number; readonly y: number } => ({
  x: (index % SIDE) * 10,
  y: Math.floor(index / SIDE) * 10
})

/** Entries that move within one view, or one in each view. */
const batch = (count: number, isSpread: boolean): object => ({
  data: Array.from({ length: ENTRIES }, (_, index) => {
    const { x, y } = cellOf((isSpread ? index : count) % (SIDE * SIDE))
    return {
      id: `transmitter-${isSpread ? 0 : count % (SIDE * SIDE)}-${index}`,
      x: x + 5,
      y: y + 5,
      accuracy: 0.4,
      count
    }
  })
})

interface ViewScenario {
  readonly channel: string
  readonly subscribers?: number | undefined
  readonly hasViews: boolean
  /** An entry in each view, not all in one. */
  readonly isSpread: boolean
  readonly publications: number
}

/** CPU time and bytes of a publication with subscribers that are distributed over 16 views, or without views. */
export const readViews = async (
  server: RunningServer,
  { channel, subscribers = SUBSCRIBERS, hasViews, isSpread, publications }: ViewScenario
): Promise<ViewReading> => {
  const sockets = await Promise.all(Array.from({ length: subscribers }, () => connected(server)))
  let bytes = 0
  for (const [index, socket] of sockets.entries()) {
    const view = { ...cellOf(index % (SIDE * SIDE)), w: 10, h: 10 }
    socket.send(JSON.stringify({ id: 2, subscribe: { channel, data: hasViews ? { view } : {} } }))
    await once(socket, 'message')
    socket.on('message', (data: Buffer) => {
      bytes += data.length
    })
  }
  // The first ones create the places.
  for (let count = 0; count < SIDE * SIDE; count++)
    await api(server, 'publish', { channel, data: batch(count, isSpread) })
  bytes = 0
  const cpuMs = await cpuOf(server, async () => {
    for (let count = 0; count < publications; count++)
      await api(server, 'publish', { channel, data: batch(count, isSpread) })
  })
  for (const socket of sockets) socket.terminate()
  return { cpuMs: cpuMs / publications, bytes: bytes / publications }
}

/** Bytes of memory per key of a map, and of its key and data. */
export const readMapMemory = (): { readonly heap: number; readonly content: number } => {
  const program = fileURLToPath(new URL('./map-memory.js', import.meta.url))
  const output = execFileSync(process.execPath, ['--expose-gc', program], { encoding: 'utf8' })
  return JSON.parse(output)
}
