import { type WebSocket, WebSocketServer } from 'ws'
import { createApi, handleCommands, listen } from './reception.js'

// The simplest implementation: a set of sockets per channel, and `send` for each of them.

const channels = new Map<string, Set<WebSocket>>()

const server = createApi((channel, body) => {
  const text = JSON.stringify({ push: { channel, pub: { data: JSON.parse(body).data } } })
  for (const socket of channels.get(channel) ?? []) socket.send(text)
})

new WebSocketServer({ server, path: '/connection/websocket' }).on('connection', (socket) => {
  const mine: Set<WebSocket>[] = []
  socket.on('message', (message) => {
    handleCommands(
      {
        send: (text) => socket.send(text),
        subscribe: (channel) => {
          const listeners = channels.get(channel) ?? new Set()
          channels.set(channel, listeners.add(socket))
          mine.push(listeners)
        }
      },
      String(message)
    )
  })
  socket.on('close', () => {
    for (const listeners of mine) listeners.delete(socket)
  })
})

listen(server)
