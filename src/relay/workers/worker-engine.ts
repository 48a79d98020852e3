import type {
  Broker,
  Delivery,
  History,
  HistoryRange,
  JoinOrLeave,
  Presence,
  PublishTarget,
  RetainedPage
} from '../core/engine.js'
import type { HistoryOptions } from '../core/options.js'
import type { NewPublication, Published } from '../core/publication.js'
import type { IpcConnection } from './ipc.js'
import {
  readHistoryPage,
  readJoinOrLeave,
  readList,
  readPublication,
  readPublished,
  writeHistoryOptions,
  writeHistoryRange,
  writeJoinOrLeave,
  writeList,
  writeNewPublication
} from './messages.js'

const ignoreReply = (): void => undefined

const CHANNELS_PER_FRAME = 5000

/**
 * A worker's side of the engine in the primary. Everything goes over one IPC connection, which keeps the order: what was published
 * before a reply was written is delivered before the reply is read.
 */
export class WorkerEngine implements Broker, History {
  readonly #primary: IpcConnection

  constructor(primary: IpcConnection) {
    this.#primary = primary
  }

  async start(delivery: Delivery): Promise<void> {
    this.#primary.onMessage({
      publication: (fields) => {
        const [channel, epoch] = [fields.text(), fields.text()]
        delivery.publication(channel, readPublication(fields), epoch)
      },
      joinOrLeave: (fields) => {
        const channel = fields.text()
        const { kind, info } = readJoinOrLeave(fields)
        delivery.joinOrLeave(channel, kind, info)
      }
    })
  }

  subscribe(channel: string): Promise<void> {
    return this.#primary.request('subscribe', (out) => out.text(channel), ignoreReply)
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#primary.send('unsubscribe', (out) => out.text(channel))
  }

  /** A worker exits when it loses the primary. */
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

  /** Sends the publication once for many channels, in several frames, so that no process is blocked for long. */
  async publishToMany(targets: readonly PublishTarget[], publication: NewPublication): Promise<readonly Published[]> {
    const published: Published[] = []
    for (let start = 0; start < targets.length; start += CHANNELS_PER_FRAME) {
      const batch = targets.slice(start, start + CHANNELS_PER_FRAME)
      const results = await this.#primary.request(
        'publishToMany',
        (out) => {
          writeNewPublication(out, publication)
          writeList(out, batch, (_, { channel, options }) => writeHistoryOptions(out.text(channel), options))
        },
        (fields) => readList(fields, readPublished)
      )
      for (const result of results) published.push(result)
    }
    return published
  }

  async joinOrLeave(channel: string, kind: JoinOrLeave, info: string): Promise<void> {
    this.#primary.send('publishJoinOrLeave', (out) => writeJoinOrLeave(out.text(channel), kind, info))
  }

  read(channel: string, range: HistoryRange, options: HistoryOptions): Promise<RetainedPage> {
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
    return this.#primary.request('removeHistory', (out) => out.text(channel), ignoreReply)
  }

  /** The IPC connection stays open for other uses. */
  async close(): Promise<void> {}
}

/** A worker's side of the presence in the primary. */
export class WorkerPresence implements Presence {
  readonly #primary: IpcConnection

  constructor(primary: IpcConnection) {
    this.#primary = primary
  }

  /** Not waited for: the IPC connection keeps the order, so later reads include the entry. */
  async add(channel: string, client: string, user: string, info: string): Promise<void> {
    this.#primary.send('addPresence', (out) => out.text(channel).text(client).text(user).text(info))
  }

  async remove(channel: string, client: string): Promise<void> {
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
