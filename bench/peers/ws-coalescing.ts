import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import { createApi, dataIn, frameOf, handleCommands, listen } from './reception.js'

// The fastest that is known with `ws`, and nothing else: frames are made once, what is published in one turn of the event
// loop is joined, and every socket gets it in one write. No limits, so a client that does not read fills the memory.

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
  const bytes = frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames)
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
      const place = sockets.indexOf(socket)
      const last = sockets.pop()
      if (last !== undefined && place < sockets.length) sockets[place] = last
    }
  })
})

listen(server)
