import { monotonicMs } from '../../shared/monotonic.js'
import type { ChannelStates, Delivery, JoinOrLeave, PublishTarget } from '../core/engine.js'
import type { NewPublication, Publication, Published } from '../core/publication.js'
import { TimeSlice } from '../core/time-slice.js'
import { MemoryEngine, type MemoryEngineDependencies } from '../engine/memory.js'
import { MemoryPresence } from '../engine/memory-presence.js'
import { FrameWriter } from './frames.js'
import { type IpcConnection, kindNumber, type MessageKind, NO_FIELDS, NO_REPLY, type Write } from './ipc.js'
import {
  readHistoryOptions,
  readHistoryRange,
  readJoinOrLeave,
  readList,
  readNewPublication,
  readPublishTarget,
  writeHistoryPage,
  writeJoinOrLeave,
  writeList,
  writePublication,
  writePublished
} from './messages.js'
import { PrimaryMaps } from './worker-maps.js'

/** The presence entries and joins of one worker, to be undone if the worker dies. */
class WorkerClients {
  /** Clients with a presence entry, by channel. */
  readonly #present = new Map<string, Set<string>>()
  /** Info of clients whose join was published, by channel and client. */
  readonly #joined = new Map<string, Map<string, string>>()

  add(channel: string, client: string): void {
    const clients = this.#present.get(channel)
    if (clients === undefined) this.#present.set(channel, new Set([client]))
    else clients.add(client)
  }

  remove(channel: string, client: string): void {
    const clients = this.#present.get(channel)
    clients?.delete(client)
    if (clients?.size === 0) this.#present.delete(channel)
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    // A worker wrote the info, so it is JSON and contains the client's id.
    const { client }: { readonly client: string } = JSON.parse(info)
    const clients = this.#joined.get(channel)
    if (kind === 'leave') {
      clients?.delete(client)
      if (clients?.size === 0) this.#joined.delete(channel)
    } else if (clients === undefined) this.#joined.set(channel, new Map([[client, info]]))
    else clients.set(client, info)
  }

  *present(): Iterable<readonly [channel: string, client: string]> {
    for (const [channel, clients] of this.#present) for (const client of clients) yield [channel, client]
  }

  *joined(): Iterable<readonly [channel: string, info: string]> {
    for (const [channel, clients] of this.#joined) for (const info of clients.values()) yield [channel, info]
  }
}

/**
 * The engine of a relay with workers: publications, history, maps and presence of all channels. A publication is encoded once and
 * sent to each worker that has subscribers for its channel.
 */
export class PrimaryEngine implements Delivery {
  readonly #engine: MemoryEngine
  readonly #maps: PrimaryMaps
  readonly #presence: MemoryPresence
  readonly #subscribers = new Map<string, Set<IpcConnection>>()
  readonly #frame = new FrameWriter()

  constructor(dependencies: MemoryEngineDependencies) {
    this.#engine = new MemoryEngine(dependencies)
    this.#maps = new PrimaryMaps(this.#engine.maps, dependencies.monotonicMs)
    this.#presence = new MemoryPresence(dependencies)
    void this.#engine.start(this)
  }

  publication(channel: string, publication: Publication, epoch: string): void {
    this.#deliver('publication', channel, (out) => {
      writePublication(out.text(epoch), publication)
    })
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    this.#deliver('joinOrLeave', channel, (out) => writeJoinOrLeave(out, kind, info))
  }

  /** Messages between processes of one machine are not lost. */
  mayHaveMissed(): void {}

  positions(): readonly [] {
    return []
  }

  sweep(): void {
    this.#engine.sweep()
  }

  get channelStates(): ChannelStates {
    return this.#presence.channelStates
  }

  /** Serves a worker until its IPC connection closes. */
  serve(ipc: IpcConnection): void {
    const clients = new WorkerClients()
    const subscribed = new Set<string>()
    this.#serveChannels(ipc, subscribed, clients)
    this.#maps.serve(ipc)
    this.#servePresence(ipc, clients)
    void ipc.closed.then(() => {
      for (const channel of subscribed) this.#unsubscribe(channel, ipc)
      for (const [channel, client] of clients.present()) void this.#presence.remove(channel, client)
      // The worker cannot publish these itself any more.
      for (const [channel, info] of clients.joined()) this.joinOrLeave(channel, 'leave', info)
    })
  }

  #serveChannels(ipc: IpcConnection, subscribed: Set<string>, clients: WorkerClients): void {
    ipc.onMessage({
      unsubscribe: (fields) => {
        const channel = fields.text()
        subscribed.delete(channel)
        this.#unsubscribe(channel, ipc)
      },
      publishJoinOrLeave: (fields) => {
        const channel = fields.text()
        const { kind, info } = readJoinOrLeave(fields)
        clients.joinOrLeave(channel, kind, info)
        this.joinOrLeave(channel, kind, info)
      }
    })
    ipc.onRequest({
      subscribe: (fields) => {
        const channel = fields.text()
        subscribed.add(channel)
        this.#subscribe(channel, ipc)
        return NO_FIELDS
      },
      publish: (fields) => {
        const published = this.#engine.publish(fields.text(), readNewPublication(fields), readHistoryOptions(fields))
        return (out) => writePublished(out, published)
      },
      publishToMany: (fields) => {
        const publication = readNewPublication(fields)
        return this.#publishToMany(publication, readList(fields, readPublishTarget))
      },
      readHistory: (fields) => {
        const page = this.#engine.read(fields.text(), readHistoryRange(fields), readHistoryOptions(fields))
        return (out) => writeHistoryPage(out, page)
      },
      removeHistory: (fields) => {
        void this.#engine.remove(fields.text())
        return NO_FIELDS
      }
    })
  }

  /** In time slices, so that other requests are served meanwhile, and no faster than the workers read. */
  async #publishToMany(publication: NewPublication, targets: readonly PublishTarget[]): Promise<Write> {
    const slice = new TimeSlice(monotonicMs)
    const results: Published[] = []
    const reached = new Set<IpcConnection>()
    for (const { channel, options } of targets) {
      results.push(this.#engine.publish(channel, publication, options))
      for (const ipc of this.#subscribers.get(channel) ?? []) reached.add(ipc)
      if (!slice.isOver) continue
      await Promise.all([...reached].map((ipc) => ipc.drained()))
      reached.clear()
      await slice.next()
    }
    return (out) => writeList(out, results, writePublished)
  }

  #servePresence(ipc: IpcConnection, clients: WorkerClients): void {
    ipc.onMessage({
      addPresence: (fields) => {
        const [channel, client] = [fields.text(), fields.text()]
        clients.add(channel, client)
        void this.#presence.add(channel, client, fields.text(), fields.text())
      },
      removePresence: (fields) => {
        const [channel, client] = [fields.text(), fields.text()]
        clients.remove(channel, client)
        void this.#presence.remove(channel, client)
      }
    })
    ipc.onRequest({
      readPresence: async (fields) => {
        const present = [...(await this.#presence.read(fields.text()))]
        return (out) => writeList(out, present, (_, [client, info]) => out.text(client).text(info))
      },
      countPresence: async (fields) => {
        const { clients: clientCount, users } = await this.#presence.count(fields.text())
        return (out) => out.number(clientCount).number(users)
      }
    })
  }

  #subscribe(channel: string, ipc: IpcConnection): void {
    const subscribers = this.#subscribers.get(channel)
    if (subscribers !== undefined) subscribers.add(ipc)
    else {
      this.#subscribers.set(channel, new Set([ipc]))
      this.#engine.subscribe(channel)
    }
  }

  #unsubscribe(channel: string, ipc: IpcConnection): void {
    const subscribers = this.#subscribers.get(channel)
    subscribers?.delete(ipc)
    if (subscribers?.size !== 0) return
    this.#subscribers.delete(channel)
    void this.#engine.unsubscribe(channel)
  }

  #deliver(kind: MessageKind, channel: string, write: Write): void {
    const subscribers = this.#subscribers.get(channel)
    if (subscribers === undefined) return
    write(this.#frame.begin(kindNumber(kind), NO_REPLY).text(channel))
    this.#frame.finish()
    const frame = this.#frame.take()
    for (const ipc of subscribers) ipc.sendFrame(frame)
  }
}
