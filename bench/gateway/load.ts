import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { percentile } from '../harness/statistics.js'

// Repeats one request over keep-alive connections, the next one after each response. It parses only as much HTTP as it
// needs to find the end of a response, so that it needs less CPU time than the server.

interface Order {
  readonly port: number
  readonly connections: number
  readonly requests: number
  readonly bytes: string
}

const run = ({ port, connections, requests, bytes }: Order): Promise<string> =>
  new Promise((resolve, reject) => {
    const request = Buffer.from(bytes, 'latin1')
    const times: number[] = []
    const sockets: Socket[] = []
    let sent = 0
    let errors = 0

    const next = (socket: Socket): void => {
      if (sent >= requests) return
      sent += 1
      const start = performance.now()
      let left = -1
      socket.on('data', function read(chunk: Buffer) {
        if (left === -1) {
          left = bodyLength(chunk) - (chunk.length - headEnd(chunk))
          if (!chunk.subarray(9, 12).equals(OK)) errors += 1
        } else left -= chunk.length
        if (left > 0) return
        socket.off('data', read)
        times.push(performance.now() - start)
        if (times.length === requests) finish()
        else next(socket)
      })
      socket.write(request)
    }

    const finish = (): void => {
      for (const socket of sockets) socket.destroy()
      const seconds = (performance.now() - began) / 1000
      resolve(
        JSON.stringify({ errors, rate: requests / seconds, p50: percentile(times, 0.5), p99: percentile(times, 0.99) })
      )
    }

    const began = performance.now()
    for (let index = 0; index < connections; index++) {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      socket.once('connect', () => next(socket))
      socket.once('error', reject)
      sockets.push(socket)
    }
  })

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
  process.stdout.write(`result ${await run(JSON.parse(line))}\n`)
}
