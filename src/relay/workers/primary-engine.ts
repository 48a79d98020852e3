import type { Delivery, JoinOrLeave, NewPublication, Publication, Published, PublishTarget } from '../core/broker.js'
import { TimeSlice } from '../core/time-slice.js'
import { MemoryEngine, type MemoryParts, MemoryPresence } from '../engine/memory.js'
import { done, FrameWriter, type IpcChannel, KIND_NUMBERS, type MessageKind, type Write } from './ipc.js'
import {
  readHistoryOptions,
  readHistoryRange,
  readList,
  readNewPublication,
  readTarget,
  writeHistoryPage,
  writeList,
  writePublication,
  writePublished
} from './messages.js'

/** Whom one worker has brought to which channels: those who are gone with it, should it end without a word. */
export class WorkerPresence {
  readonly #present = new Map<string, Set<string>>()
  /** What was said of them when they came, by channel and client. */
  readonly #announced = new Map<string, Map<string, string>>()

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

  announce(channel: string, kind: JoinOrLeave, info: string): void {
    // Written by a worker of this program, so it is JSON and says who it is about.
    const { client } = JSON.parse(info) as { readonly client: string }
    const clients = this.#announced.get(channel)
    if (kind === 'leave') {
      clients?.delete(client)
      if (clients?.size === 0) this.#announced.delete(channel)
    } else if (clients === undefined) this.#announced.set(channel, new Map([[client, info]]))
    else clients.set(client, info)
  }

  *present(): Iterable<readonly [channel: string, client: string]> {
    for (const [channel, clients] of this.#present) for (const client of clients) yield [channel, client]
  }

  *announced(): Iterable<readonly [channel: string, info: string]> {
    for (const [channel, clients] of this.#announced) for (const info of clients.values()) yield [channel, info]
  }
}

/**
 * The process that knows every channel: what was published, in which order, and who is there. It serves no clients. A
 * publication is written down once and copied once for each worker that has subscribers for its channel.
 */
export class PrimaryEngine implements Delivery {
  readonly #engine: MemoryEngine
  readonly #presence = new MemoryPresence()
  readonly #listeners = new Map<string, Set<IpcChannel>>()
  readonly #frame = new FrameWriter()

  constructor(parts: MemoryParts) {
    this.#engine = new MemoryEngine(parts)
    this.#engine.start(this)
  }

  publication(channel: string, publication: Publication, epoch: string): void {
    this.#deliver('publication', channel, (out) => {
      writePublication(out.text(epoch), publication)
    })
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    this.#deliver('joinOrLeave', channel, (out) => out.text(kind).text(info))
  }

  /** Within one process nothing is lost. */
  mayHaveMissed(): void {}

  positions(): readonly [] {
    return []
  }

  sweep(): void {
    this.#engine.sweep()
  }

  /** Until the link closes its worker is served; then nothing of it is left. */
  serve(ipc: IpcChannel): void {
    const attendance = new WorkerPresence()
    const subscribed = new Set<string>()
    this.#serveChannels(ipc, subscribed, attendance)
    this.#servePresence(ipc, attendance)
    void ipc.closed.then(() => {
      for (const channel of subscribed) this.#unsubscribe(channel, ipc)
      for (const [channel, client] of attendance.present()) this.#presence.remove(channel, client)
      // Nobody else can say it for them.
      for (const [channel, info] of attendance.announced()) this.joinOrLeave(channel, 'leave', info)
    })
  }

  #serveChannels(ipc: IpcChannel, subscribed: Set<string>, attendance: WorkerPresence): void {
    ipc.onMessage({
      unsubscribe: (fields) => {
        const channel = fields.text()
        subscribed.delete(channel)
        this.#unsubscribe(channel, ipc)
      },
      announce: (fields) => {
        const [channel, kind, info] = [fields.text(), fields.text() as JoinOrLeave, fields.text()]
        attendance.announce(channel, kind, info)
        this.joinOrLeave(channel, kind, info)
      }
    })
    ipc.onRequest({
      subscribe: (fields) => {
        const channel = fields.text()
        subscribed.add(channel)
        this.#subscribe(channel, ipc)
        return done
      },
      publish: (fields) => {
        const published = this.#engine.publish(fields.text(), readNewPublication(fields), readHistoryOptions(fields))
        return (out) => writePublished(out, published)
      },
      publishToMany: (fields) => {
        const publication = readNewPublication(fields)
        return this.#publishToMany(publication, readList(fields, readTarget))
      },
      readHistory: (fields) => {
        const page = this.#engine.read(fields.text(), readHistoryRange(fields), readHistoryOptions(fields))
        return (out) => writeHistoryPage(out, page)
      },
      removeHistory: (fields) => {
        this.#engine.remove(fields.text())
        return done
      }
    })
  }

  /** In slices, because workers ask for other things meanwhile; and no faster than subscribers' workers take it. */
  async #publishToMany(publication: NewPublication, targets: readonly PublishTarget[]): Promise<Write> {
    const slice = new TimeSlice()
    const results: Published[] = []
    const reached = new Set<IpcChannel>()
    for (const { channel, options } of targets) {
      results.push(this.#engine.publish(channel, publication, options))
      for (const ipc of this.#listeners.get(channel) ?? []) reached.add(ipc)
      if (!slice.isOver) continue
      await Promise.all([...reached].map((ipc) => ipc.caughtUp()))
      reached.clear()
      await slice.next()
    }
    return (out) => writeList(out, results, writePublished)
  }

  #servePresence(ipc: IpcChannel, attendance: WorkerPresence): void {
    ipc.onMessage({
      addPresence: (fields) => {
        const [channel, client] = [fields.text(), fields.text()]
        attendance.add(channel, client)
        this.#presence.add(channel, client, fields.text(), fields.text())
      },
      removePresence: (fields) => {
        const [channel, client] = [fields.text(), fields.text()]
        attendance.remove(channel, client)
        this.#presence.remove(channel, client)
      }
    })
    ipc.onRequest({
      readPresence: (fields) => {
        const present = [...this.#presence.read(fields.text())]
        return (out) => writeList(out, present, (_, [client, info]) => out.text(client).text(info))
      },
      countPresence: (fields) => {
        const { clients, users } = this.#presence.count(fields.text())
        return (out) => out.number(clients).number(users)
      }
    })
  }

  #subscribe(channel: string, ipc: IpcChannel): void {
    const listeners = this.#listeners.get(channel)
    if (listeners !== undefined) listeners.add(ipc)
    else {
      this.#listeners.set(channel, new Set([ipc]))
      this.#engine.subscribe(channel)
    }
  }

  #unsubscribe(channel: string, ipc: IpcChannel): void {
    const listeners = this.#listeners.get(channel)
    listeners?.delete(ipc)
    if (listeners?.size !== 0) return
    this.#listeners.delete(channel)
    this.#engine.unsubscribe(channel)
  }

  #deliver(kind: MessageKind, channel: string, write: Write): void {
    const listeners = this.#listeners.get(channel)
    if (listeners === undefined) return
    write(this.#frame.begin(KIND_NUMBERS[kind], 0).text(channel))
    this.#frame.finish()
    const frame = this.#frame.take()
    for (const ipc of listeners) ipc.forward(frame)
  }
}
