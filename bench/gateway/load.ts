import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { pace } from '../harness/pace.js'
import { type Latency, latencyPercentiles } from '../harness/statistics.js'

// Repeats one request over keep-alive connections. It parses only as much HTTP as it needs to find the end of a response, so
// that it needs less CPU time than the server.

export interface Order {
  readonly port: number
  readonly connections: number
  readonly requests: number
  readonly bytes: string
  /** Requests are sent at this rate; without it, each connection sends the next request after a response. */
  readonly perSecond?: number | undefined
}

export interface LoadResult extends Latency {
  readonly errors: number
  /** Responses per second. */
  readonly rate: number
}

const run = async ({ port, connections, requests, bytes, perSecond }: Order): Promise<LoadResult> => {
  const request = Buffer.from(bytes, 'latin1')
  const sockets = Array.from({ length: connections }, () => connect({ port, host: '127.0.0.1', noDelay: true }))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const idle = [...sockets]
  /** Intended times of the requests that wait for a connection. */
  const waiting: number[] = []
  const latencies: number[] = []
  let sent = 0
  let errors = 0
  const began = performance.now()

  await new Promise<void>((resolve, reject) => {
    const send = (socket: Socket, intendedAt: number): void => {
      let left = -1
      socket.on('data', function read(chunk: Buffer) {
        if (left === -1) {
          left = bodyLength(chunk) - (chunk.length - headEnd(chunk))
          if (!chunk.subarray(9, 12).equals(OK)) errors += 1
        } else left -= chunk.length
        if (left > 0) return
        socket.off('data', read)
        latencies.push(performance.now() - intendedAt)
        if (latencies.length === requests) resolve()
        else responded(socket)
      })
      socket.write(request)
    }
    const responded = (socket: Socket): void => {
      const next = waiting.shift()
      if (next !== undefined) send(socket, next)
      else if (perSecond === undefined && sent < requests) {
        sent += 1
        send(socket, performance.now())
      } else idle.push(socket)
    }
    for (const socket of sockets) socket.once('error', reject)
    if (perSecond === undefined) {
      for (const socket of idle.splice(0)) responded(socket)
      return
    }
    pace({ perSecond, calls: requests }, (intendedAt) => {
      const socket = idle.pop()
      if (socket === undefined) waiting.push(intendedAt)
      else send(socket, intendedAt)
    })
  })
  for (const socket of sockets) socket.destroy()
  const seconds = (performance.now() - began) / 1000
  return { errors, rate: requests / seconds, ...latencyPercentiles(latencies) }
}

const OK = Buffer.from('200')
const headEnd = (chunk: Buffer): number => chunk.indexOf('\r\n\r\n') + 4

/** Responses without a length are chunked; in this benchmark they have one chunk. */
const bodyLength = (chunk: Buffer): number => {
  const head = chunk.toString('latin1', 0, headEnd(chunk)).toLowerCase()
  const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1]
  if (length !== undefined) return Number(length)
  const start = headEnd(chunk)
  const size = chunk.toString('latin1', start, chunk.indexOf('\r\n', start))
  return size.length + 2 + Number.parseInt(size, 16) + 2 + '0\r\n\r\n'.length
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`result ${JSON.stringify(await run(JSON.parse(line)))}\n`)
}
