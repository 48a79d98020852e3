import type {
  Broker,
  Delivery,
  History,
  HistoryPage,
  HistoryRange,
  JoinOrLeave,
  NewPublication,
  Presence,
  Published,
  PublishTarget
} from '../core/broker.js'
import type { HistoryOptions } from '../core/options.js'
import type { IpcChannel } from './ipc.js'
import {
  readHistoryPage,
  readList,
  readPublication,
  readPublished,
  writeHistoryOptions,
  writeHistoryRange,
  writeList,
  writeNewPublication
} from './messages.js'

const nothing = (): void => undefined

const CHANNELS_PER_FRAME = 5000

/**
 * A worker's view of the channels that another process owns. All of it goes over one link, which keeps the order: what was
 * published before an answer was written is delivered before the answer is read.
 */
export class WorkerEngine implements Broker, History {
  readonly #primary: IpcChannel

  constructor(primary: IpcChannel) {
    this.#primary = primary
  }

  start(delivery: Delivery): void {
    this.#primary.onMessage({
      publication: (fields) => {
        const [channel, epoch] = [fields.text(), fields.text()]
        delivery.publication(channel, readPublication(fields), epoch)
      },
      joinOrLeave: (fields) => delivery.joinOrLeave(fields.text(), fields.text() as JoinOrLeave, fields.text())
    })
  }

  subscribe(channel: string): Promise<void> {
    return this.#primary.request('subscribe', (out) => out.text(channel), nothing)
  }

  unsubscribe(channel: string): void {
    this.#primary.send('unsubscribe', (out) => out.text(channel))
  }

  /** Without the owner there is no worker either. */
  isDelivering(): boolean {
    return true
  }

  publish(channel: string, publication: NewPublication, options: HistoryOptions): Promise<Published> {
    return this.#primary.request(
      'publish',
      (out) => {
        writeNewPublication(out.text(channel), publication)
        writeHistoryOptions(out, options)
      },
      readPublished
    )
  }

  /** The publication is written once for many channels, and one frame after the other, so that neither side is busy for long. */
  async publishToMany(targets: readonly PublishTarget[], publication: NewPublication): Promise<readonly Published[]> {
    const published: Published[] = []
    for (let start = 0; start < targets.length; start += CHANNELS_PER_FRAME) {
      const together = targets.slice(start, start + CHANNELS_PER_FRAME)
      const results = await this.#primary.request(
        'publishToMany',
        (out) => {
          writeNewPublication(out, publication)
          writeList(out, together, (_, { channel, options }) => writeHistoryOptions(out.text(channel), options))
        },
        (fields) => readList(fields, readPublished)
      )
      for (const result of results) published.push(result)
    }
    return published
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    this.#primary.send('announce', (out) => out.text(channel).text(kind).text(info))
  }

  read(channel: string, range: HistoryRange, options: HistoryOptions): Promise<HistoryPage> {
    return this.#primary.request(
      'readHistory',
      (out) => {
        writeHistoryRange(out.text(channel), range)
        writeHistoryOptions(out, options)
      },
      readHistoryPage
    )
  }

  remove(channel: string): Promise<void> {
    return this.#primary.request('removeHistory', (out) => out.text(channel), nothing)
  }

  /** The link is not the engine's to close. */
  close(): void {}
}

/** Who listens, as the owner of the channels knows it. */
export class WorkerPresenceClient implements Presence {
  readonly #primary: IpcChannel

  constructor(primary: IpcChannel) {
    this.#primary = primary
  }

  /** Not waited for: who is told of somebody over the same link, or another, is told later than this. */
  add(channel: string, client: string, user: string, info: string): void {
    this.#primary.send('addPresence', (out) => out.text(channel).text(client).text(user).text(info))
  }

  remove(channel: string, client: string): void {
    this.#primary.send('removePresence', (out) => out.text(channel).text(client))
  }

  read(channel: string): Promise<ReadonlyMap<string, string>> {
    return this.#primary.request(
      'readPresence',
      (out) => out.text(channel),
      (fields) => new Map(readList(fields, () => [fields.text(), fields.text()] as const))
    )
  }

  count(channel: string): Promise<{ readonly clients: number; readonly users: number }> {
    return this.#primary.request(
      'countPresence',
      (out) => out.text(channel),
      (fields) => ({ clients: fields.number(), users: fields.number() })
    )
  }
}
