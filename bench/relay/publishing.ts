import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Sends pipelined publish requests over keep-alive connections to each port and reports the responses. */
export class Publishing {
  readonly #requests: readonly Buffer[]
  /** The connections to each port. */
  readonly #sockets: readonly (readonly Socket[])[]
  readonly #onResponse: (isOk: boolean) => void
  #sent = 0

  private constructor(
    requests: readonly Buffer[],
    sockets: readonly (readonly Socket[])[],
    onResponse: (isOk: boolean) => void
  ) {
    this.#requests = requests
    this.#sockets = sockets
    this.#onResponse = onResponse
    for (const socket of sockets.flat()) this.#readResponses(socket)
  }

  static async open(
    ports: readonly number[],
    connections: number,
    requests: readonly Buffer[],
    onResponse: (isOk: boolean) => void
  ): Promise<Publishing> {
    const sockets = ports.map((port) =>
      Array.from({ length: connections / ports.length }, () => connect({ port, host: '127.0.0.1', noDelay: true }))
    )
    await Promise.all(sockets.flat().map((socket) => once(socket, 'connect')))
    return new Publishing(requests, sockets, onResponse)
  }

  /** Publishes over the next connection, to the next channel unless a request is passed. */
  send(request = this.#nextRequest()): void {
    for (const ofPort of this.#sockets) ofPort[this.#sent % ofPort.length]?.write(request)
    this.#sent += 1
  }

  #nextRequest(): Buffer {
    // There is at least one channel, so the index is in range.
    return this.#requests[this.#sent % this.#requests.length] as Buffer
  }

  close(): void {
    for (const socket of this.#sockets.flat()) socket.destroy()
  }

  #readResponses(socket: Socket): void {
    let unread = ''
    socket.setEncoding('latin1').on('data', (text: string) => {
      unread += text
      for (;;) {
        const head = unread.indexOf('\r\n\r\n')
        if (head === -1) return
        const length = Number(/content-length: *(\d+)/i.exec(unread.slice(0, head))?.[1] ?? 0)
        const end = head + 4 + length
        if (unread.length < end) return
        const response = unread.slice(0, end)
        unread = unread.slice(end)
        this.#onResponse(response.startsWith('HTTP/1.1 200') && response.includes('"result"'))
      }
    })
  }
}

export const publishRequest = (key: string, channel: string, data: string): Buffer => {
  const body = `{"channel":"${channel}","data":${data}}`
  return Buffer.from(
    `POST /api/publish HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}
