import type { Server } from 'node:http'
import { peerPackage } from '../harness/peer-packages.js'
import { createApi, isGoodToken, listen } from './reception.js'

/** The part of socket.io that is used here. */
interface Io {
  to(room: string): { emit(event: string, data: object): void }
  use(check: (socket: IoSocket, next: (error?: Error) => void) => void): void
  on(event: 'connection', listener: (socket: IoSocket) => void): void
}
interface IoSocket {
  readonly handshake: { readonly auth: { readonly token: string } }
  on(event: 'subscribe', listener: (channel: string, done: () => void) => void): void
  join(room: string): void
}

const { Server: SocketIo } = peerPackage('socket.io') as { Server: new (server: Server, options: object) => Io }

// socket.io with a room per channel, over WebSocket only.

const server = createApi((channel, body) => {
  io.to(channel).emit('publication', { channel, data: JSON.parse(body).data })
})
const io = new SocketIo(server, { transports: ['websocket'], serveClient: false })

io.use((socket, next) => next(isGoodToken(socket.handshake.auth.token) ? undefined : new Error('token')))
io.on('connection', (socket) => {
  socket.on('subscribe', (channel, done) => {
    socket.join(channel)
    done()
  })
})

listen(server)
