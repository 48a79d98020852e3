import { Server } from 'socket.io'
import { createApi, isGoodToken, listen } from './reception.js'

// socket.io with a room per channel, over WebSocket only.

const server = createApi((channel, body) => {
  io.to(channel).emit('publication', { channel, data: JSON.parse(body).data })
})
const io = new Server(server, { transports: ['websocket'], serveClient: false })

io.use((socket, next) => next(isGoodToken(socket.handshake.auth.token) ? undefined : new Error('token')))
io.on('connection', (socket) => {
  socket.on('subscribe', (channel: string, done: () => void) => {
    void socket.join(channel)
    done()
  })
})

listen(server)
