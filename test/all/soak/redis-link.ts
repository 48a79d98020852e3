import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Teardown } from '../../helper/child.js'
import { LOOPBACK } from '../../helper/free-port.js'

interface Connection {
  readonly node: Socket
  readonly redis: Socket
  isSubscriber: boolean
}

/** The subscribe command as the Redis protocol (RESP) writes it. */
const SUBSCRIBE = /\$9\r\nsubscribe\r\n/i

/** The TCP connections between one node and Redis, which the test can break. */
export class RedisLink {
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  #isRejecting = false

  static async start(t: Teardown, redisPort: number): Promise<RedisLink> {
    const link = new RedisLink(redisPort)
    await once(link.#server.listen(0, LOOPBACK), 'listening')
    t.teardown(() => {
      link.closeAll()
      link.#server.close()
    })
    return link
  }

  private constructor(redisPort: number) {
    this.#server = createServer((node) => this.#accept(node, connect(redisPort, LOOPBACK)))
  }

  get url(): string {
    // It listens on a TCP port, so its address is not a path.
    return `redis://${LOOPBACK}:${(this.#server.address() as AddressInfo).port}`
  }

  /** Closes all connections. */
  closeAll(): void {
    for (const { node } of this.#connections) node.destroy()
  }

  closeSubscriber(): void {
    for (const { node, isSubscriber } of this.#connections) if (isSubscriber) node.destroy()
  }

  /** The subscriber connection stays open, but nothing that Redis sends arrives any more. */
  silenceSubscriber(): void {
    for (const { node, redis, isSubscriber } of this.#connections) if (isSubscriber) redis.unpipe(node).resume()
  }

  /** While refusing, new connections are closed at once. */
  setRejecting(isRejecting: boolean): void {
    this.#isRejecting = isRejecting
    if (isRejecting) this.closeAll()
  }

  #accept(node: Socket, redis: Socket): void {
    const connection: Connection = { node, redis, isSubscriber: false }
    this.#connections.add(connection)
    const end = (): void => {
      this.#connections.delete(connection)
      node.destroy()
      redis.destroy()
    }
    for (const socket of [node, redis]) socket.on('error', () => undefined).on('close', end)
    node.on('data', (data) => {
      if (!connection.isSubscriber) connection.isSubscriber = SUBSCRIBE.test(data.toString('latin1'))
    })
    node.pipe(redis)
    redis.pipe(node)
    if (this.#isRejecting) end()
  }
}
