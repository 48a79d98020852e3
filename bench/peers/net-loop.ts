import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { createApi, dataIn, frameOf, handleCommands, listen } from './reception.js'

// The same bytes over plain sockets, one write each: the cost of Node.js without a WebSocket library. It supports only
// the part of the protocol that the benchmark's client uses.

const channels = new Map<string, Set<Socket>>()

const server = createApi((channel, body) => {
  const frame = frameOf(`{"push":{"channel":"${channel}","pub":{"data":${dataIn(body)}}}}`)
  for (const socket of channels.get(channel) ?? []) socket.write(frame)
})

const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const acceptOf = (key: string): string => createHash('sha1').update(`${key}${MAGIC}`).digest('base64')

const TEXT_FRAME = 0x81
const HEAD_BYTES = 4
const MASK_BYTES = 4

server.on('upgrade', (request, stream) => {
  // The server has plain TCP connections; the type also allows other streams.
  const socket = stream as Socket
  socket.setNoDelay(true)
  const mine: Set<Socket>[] = []
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(request.headers['sec-websocket-key'] ?? '')}\r\n\r\n`
  )
  socket.on('data', (bytes) => {
    // The client sends its commands in one frame of 126 to 65 535 bytes, masked with zeros.
    if (bytes[0] !== TEXT_FRAME || bytes[1] !== 0xfe) return
    handleCommands(
      {
        send: (text) => socket.write(frameOf(text)),
        subscribe: (channel) => {
          const listeners = channels.get(channel) ?? new Set()
          channels.set(channel, listeners.add(socket))
          mine.push(listeners)
        }
      },
      bytes.toString('utf8', HEAD_BYTES + MASK_BYTES)
    )
  })
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    for (const listeners of mine) listeners.delete(socket)
  })
})

listen(server)
