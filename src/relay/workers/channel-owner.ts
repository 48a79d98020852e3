import type { Delivery, JoinOrLeave, NewPublication, Publication, Published, PublishTarget } from '../core/broker.js'
import { Slices } from '../core/slices.js'
import { MemoryEngine, type MemoryParts } from '../engine/memory.js'
import { MemoryPresence } from '../engine/memory-presence.js'
import { Attendance } from './attendance.js'
import { FrameWriter } from './frame-writer.js'
import { type Kind, NUMBER_OF } from './kinds.js'
import { done, type Link, type Write } from './link.js'
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

/**
 * The process that knows every channel: what was published, in which order, and who is there. It serves no clients. A
 * publication is written down once and copied once for each worker that has subscribers for its channel.
 */
export class ChannelOwner implements Delivery {
  readonly #engine: MemoryEngine
  readonly #presence = new MemoryPresence()
  readonly #listeners = new Map<string, Set<Link>>()
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
  serve(link: Link): void {
    const attendance = new Attendance()
    const subscribed = new Set<string>()
    this.#serveChannels(link, subscribed, attendance)
    this.#servePresence(link, attendance)
    void link.closed.then(() => {
      for (const channel of subscribed) this.#unsubscribe(channel, link)
      for (const [channel, client] of attendance.present()) this.#presence.remove(channel, client)
      // Nobody else can say it for them.
      for (const [channel, info] of attendance.announced()) this.joinOrLeave(channel, 'leave', info)
    })
  }

  #serveChannels(link: Link, subscribed: Set<string>, attendance: Attendance): void {
    link.hears({
      unsubscribe: (fields) => {
        const channel = fields.text()
        subscribed.delete(channel)
        this.#unsubscribe(channel, link)
      },
      announce: (fields) => {
        const [channel, kind, info] = [fields.text(), fields.text() as JoinOrLeave, fields.text()]
        attendance.announce(channel, kind, info)
        this.joinOrLeave(channel, kind, info)
      }
    })
    link.answers({
      subscribe: (fields) => {
        const channel = fields.text()
        subscribed.add(channel)
        this.#subscribe(channel, link)
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
    const slices = new Slices()
    const results: Published[] = []
    const reached = new Set<Link>()
    for (const { channel, options } of targets) {
      results.push(this.#engine.publish(channel, publication, options))
      for (const link of this.#listeners.get(channel) ?? []) reached.add(link)
      if (!slices.isOver) continue
      await Promise.all([...reached].map((link) => link.caughtUp()))
      reached.clear()
      await slices.next()
    }
    return (out) => writeList(out, results, writePublished)
  }

  #servePresence(link: Link, attendance: Attendance): void {
    link.hears({
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
    link.answers({
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

  #subscribe(channel: string, link: Link): void {
    const listeners = this.#listeners.get(channel)
    if (listeners !== undefined) listeners.add(link)
    else {
      this.#listeners.set(channel, new Set([link]))
      this.#engine.subscribe(channel)
    }
  }

  #unsubscribe(channel: string, link: Link): void {
    const listeners = this.#listeners.get(channel)
    listeners?.delete(link)
    if (listeners?.size !== 0) return
    this.#listeners.delete(channel)
    this.#engine.unsubscribe(channel)
  }

  #deliver(kind: Kind, channel: string, write: Write): void {
    const listeners = this.#listeners.get(channel)
    if (listeners === undefined) return
    write(this.#frame.begin(NUMBER_OF[kind], 0).text(channel))
    this.#frame.finish()
    const frame = this.#frame.take()
    for (const link of listeners) link.forward(frame)
  }
}
