import type {
  Broker,
  Delivery,
  History,
  HistoryPage,
  HistoryRange,
  JoinOrLeave,
  NewPublication,
  Published,
  PublishTarget
} from '../core/broker.js'
import type { HistoryOptions } from '../core/options.js'
import type { Link } from './link.js'
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
export class OwnedEngine implements Broker, History {
  readonly #owner: Link

  constructor(owner: Link) {
    this.#owner = owner
  }

  start(delivery: Delivery): void {
    this.#owner.hears({
      publication: (fields) => {
        const [channel, epoch] = [fields.text(), fields.text()]
        delivery.publication(channel, readPublication(fields), epoch)
      },
      joinOrLeave: (fields) => delivery.joinOrLeave(fields.text(), fields.text() as JoinOrLeave, fields.text())
    })
  }

  subscribe(channel: string): Promise<void> {
    return this.#owner.ask('subscribe', (out) => out.text(channel), nothing)
  }

  unsubscribe(channel: string): void {
    this.#owner.tell('unsubscribe', (out) => out.text(channel))
  }

  /** Without the owner there is no worker either. */
  isDelivering(): boolean {
    return true
  }

  publish(channel: string, publication: NewPublication, options: HistoryOptions): Promise<Published> {
    return this.#owner.ask(
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
      const results = await this.#owner.ask(
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
    this.#owner.tell('announce', (out) => out.text(channel).text(kind).text(info))
  }

  read(channel: string, range: HistoryRange, options: HistoryOptions): Promise<HistoryPage> {
    return this.#owner.ask(
      'readHistory',
      (out) => {
        writeHistoryRange(out.text(channel), range)
        writeHistoryOptions(out, options)
      },
      readHistoryPage
    )
  }

  remove(channel: string): Promise<void> {
    return this.#owner.ask('removeHistory', (out) => out.text(channel), nothing)
  }

  /** The link is not the engine's to close. */
  close(): void {}
}
