import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import { createApi, dataIn, frameOf, handleCommands, listen } from './reception.js'

// The fastest known way to broadcast with `ws`: each frame is encoded once, and the publications of one event-loop turn are
// sent to every socket in one write. It has no limits, so a client that does not read fills the memory.

interface Channel {
  readonly sockets: Socket[]
  frames: Buffer[]
}

const channels = new Map<string, Channel>()
const channelOf = (name: string): Channel => {
  const known = channels.get(name)
  if (known !== undefined) return known
  const channel = { sockets: [], frames: [] }
  channels.set(name, channel)
  return channel
}

const flush = (channel: Channel): void => {
  const { frames, sockets } = channel
  channel.frames = []
  const [first] = frames
  const bytes = first !== undefined && frames.length === 1 ? first : Buffer.concat(frames)
  for (const socket of sockets) socket.write(bytes)
}

const server = createApi((name, body) => {
  const channel = channelOf(name)
  if (channel.frames.push(frameOf(`{"push":{"channel":"${name}","pub":{"data":${dataIn(body)}}}}`)) === 1)
    setImmediate(flush, channel)
})

const options = { server, path: '/connection/websocket', clientTracking: false, perMessageDeflate: false }
new WebSocketServer(options).on('connection', (client, { socket }) => {
  const mine: Channel[] = []
  client.on('message', (message) => {
    handleCommands(
      {
        send: (text) => socket.write(frameOf(text)),
        subscribe: (name) => {
          const channel = channelOf(name)
          channel.sockets.push(socket)
          mine.push(channel)
        }
      },
      String(message)
    )
  })
  client.on('close', () => {
    for (const { sockets } of mine) {
      const index = sockets.indexOf(socket)
      const last = sockets.pop()
      if (last !== undefined && index < sockets.length) sockets[index] = last
    }
  })
})

listen(server)
