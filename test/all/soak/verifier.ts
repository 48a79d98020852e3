import { type Guarantee, keysOf } from './channels.js'
import type { Journal, Position, Received, Subscribed } from './journal.js'

/** A publication that the API has confirmed. */
export interface Acknowledged extends Position {
  readonly channel: string
  readonly n: number
}

export interface Violation {
  /** A client, or a process of the relay. */
  readonly subject: string
  readonly channel: string
  readonly rule: string
  readonly expected: string
  readonly received: string
}

export interface Evidence {
  readonly journals: readonly Journal[]
  readonly acknowledged: readonly Acknowledged[]
  /** The end of every stream, read when all publishing had stopped. */
  readonly ends: ReadonlyMap<string, Position>
  /** How often the test destroyed stored publications: only that may start a new epoch. */
  readonly dataLosses: number
}

export interface Verdict {
  readonly violations: readonly Violation[]
  readonly deliveries: number
  /** Deliveries on conflated channels that stand for several publications. */
  readonly merged: number
  readonly recoveries: number
  /** Recoveries that failed, and that the client was informed of. */
  readonly failedRecoveries: number
}

/** Compares what every client received with what was published. */
export const verify = (evidence: Evidence): Verdict => {
  const violations: Violation[] = []
  const report = (violation: Violation): void => {
    violations.push(violation)
  }
  const streams = new Streams(report)
  for (const { channel, epoch, offset, n } of evidence.acknowledged) {
    if (offset > 0) streams.learn('publisher', channel, { epoch, offset }, n)
  }
  for (const journal of evidence.journals) learnFrom(journal, streams)
  checkEpochs(evidence, streams, report)
  checkEnds(evidence, report)

  const counts = { deliveries: 0, merged: 0, recoveries: 0, failedRecoveries: 0 }
  for (const journal of evidence.journals) {
    const walk = new Walk(journal, streams, report)
    walk.run(evidence.ends.get(journal.channel.name))
    counts.deliveries += walk.deliveries
    counts.merged += walk.merged
    counts.recoveries += walk.recoveries
    counts.failedRecoveries += walk.failedRecoveries
  }
  return { violations, ...counts }
}

type Report = (violation: Violation) => void

/** One epoch of a channel: which publication has which offset. */
interface Stream {
  readonly numbers: Map<number, number>
  readonly offsets: Map<number, number>
}

/** The streams as the publisher and all clients together have seen them. */
class Streams {
  readonly #streams = new Map<string, Map<string, Stream>>()
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  epochsOf(channel: string): readonly string[] {
    return [...(this.#streams.get(channel)?.keys() ?? [])]
  }

  stream(channel: string, epoch: string): Stream {
    let epochs = this.#streams.get(channel)
    if (epochs === undefined) {
      epochs = new Map()
      this.#streams.set(channel, epochs)
    }
    let stream = epochs.get(epoch)
    if (stream === undefined) {
      stream = { numbers: new Map(), offsets: new Map() }
      epochs.set(epoch, stream)
    }
    return stream
  }

  learn(subject: string, channel: string, { epoch, offset }: Position, n: number): void {
    const { numbers, offsets } = this.stream(channel, epoch)
    const known = numbers.get(offset)
    if (known !== undefined && known !== n) {
      this.#report({
        subject,
        channel,
        rule: 'an offset of an epoch belongs to one publication',
        expected: `publication ${known} at ${at({ epoch, offset })}`,
        received: `publication ${n}`
      })
      return
    }
    const first = offsets.get(n)
    if (first !== undefined && first !== offset) {
      this.#report({
        subject,
        channel,
        rule: 'an idempotency key publishes once',
        expected: `publication ${n} at ${at({ epoch, offset: first })} only`,
        received: `publication ${n} at ${at({ epoch, offset })} too`
      })
      return
    }
    numbers.set(offset, n)
    offsets.set(n, offset)
  }
}

const learnFrom = ({ client, channel, entries }: Journal, streams: Streams): void => {
  let epoch = ''
  for (const entry of entries) {
    if (entry.kind === 'subscribed') {
      epoch = entry.epoch
      if (epoch !== '') streams.stream(channel.name, epoch)
    } else if (entry.kind === 'publication' && epoch !== '' && entry.offset > 0 && !Number.isNaN(entry.n))
      streams.learn(client, channel.name, { epoch, offset: entry.offset }, entry.n)
  }
}

/** A new epoch tells clients that publications were lost, so nothing else may start one. */
const checkEpochs = ({ journals, dataLosses }: Evidence, streams: Streams, report: Report): void => {
  for (const name of new Set(journals.map(({ channel }) => channel.name))) {
    const epochs = streams.epochsOf(name)
    if (epochs.length <= dataLosses + 1) continue
    report({
      subject: 'relay',
      channel: name,
      rule: 'an epoch ends only when stored publications are lost',
      expected: `at most ${dataLosses + 1} epochs after ${dataLosses} losses of data`,
      received: `${epochs.length}: ${epochs.join(', ')}`
    })
  }
}

/** A confirmed publication of the last epoch is in the stream, and the stream does not end before it. */
const checkEnds = ({ acknowledged, ends }: Evidence, report: Report): void => {
  for (const { channel, n, epoch, offset } of acknowledged) {
    const end = ends.get(channel)
    if (end === undefined || end.epoch !== epoch || offset <= end.offset) continue
    report({
      subject: 'publisher',
      channel,
      rule: 'a confirmed publication stays in the stream',
      expected: `publication ${n} at ${at({ epoch, offset })}`,
      received: `a stream that ends at ${end.offset}`
    })
  }
}

/** Goes through one journal and follows the client's position. */
class Walk {
  deliveries = 0
  merged = 0
  recoveries = 0
  failedRecoveries = 0
  readonly #journal: Journal
  readonly #guarantee: Guarantee
  readonly #streams: Streams
  readonly #report: Report
  #position: Position | null = null
  /** In the mode `newest` the first publication after subscribing may skip older ones. */
  #maySkip = false
  /** On a live channel: the number that was received last. */
  #last = 0
  /** On a conflated channel: the offset that the client's entry of a key was published with. */
  readonly #known = new Map<string, number>()

  constructor(journal: Journal, streams: Streams, report: Report) {
    this.#journal = journal
    this.#guarantee = journal.channel.guarantee
    this.#streams = streams
    this.#report = report
  }

  run(end: Position | undefined): void {
    for (const entry of this.#journal.entries) {
      if (entry.kind === 'subscribed') this.#subscribed(entry)
      else if (entry.kind === 'publication') this.#received(entry)
      else this.#last = 0
    }
    if (end === undefined || this.#guarantee === 'live' || this.#journal.isTemporary) return
    const position = this.#position
    if (position?.epoch === end.epoch && position.offset === end.offset) return
    this.#violation(
      'every client receives the end of the stream',
      at(end),
      position === null ? 'nothing' : at(position)
    )
  }

  #subscribed(subscribed: Subscribed): void {
    const { epoch, offset, wasRecovering, recovered } = subscribed
    if (wasRecovering) this.recoveries++
    if (this.#guarantee === 'live') {
      this.#last = 0
      return
    }
    const before = this.#position
    if (this.#guarantee === 'newest') {
      this.#position = { epoch, offset }
      this.#maySkip = true
      return
    }
    if (before === null) {
      this.#position = { epoch, offset }
      return
    }
    if (recovered) {
      if (epoch !== before.epoch)
        this.#violation('a recovery continues the same epoch', `a position after ${at(before)}`, at({ epoch, offset }))
      return
    }
    this.failedRecoveries++
    if (!wasRecovering)
      this.#violation(
        'a client that has a position recovers',
        `was_recovering after ${at(before)}`,
        'a first subscription'
      )
    else if (epoch === before.epoch) this.#checkFailedRecovery(before, subscribed)
    this.#position = { epoch, offset }
    this.#known.clear()
  }

  #checkFailedRecovery(before: Position, { epoch, offset }: Position): void {
    const { historySize } = this.#journal.channel
    const missed = offset - before.offset
    if (missed > historySize) return
    this.#violation(
      'a recovery succeeds while the history holds what was missed',
      `the ${missed} publications after ${at(before)}, of ${historySize} in the history`,
      `recovered: false at ${at({ epoch, offset })}`
    )
  }

  #received(received: Received): void {
    this.deliveries++
    const { offset, n, isIntact } = received
    if (!isIntact) this.#violation('data arrives as it was published', `the data of publication ${n}`, 'other data')
    if (this.#guarantee === 'live') {
      if (n <= this.#last)
        this.#violation('publications arrive once and in order', `a number after ${this.#last}`, `${n}`)
      this.#last = n
      return
    }
    const before = this.#position
    if (before === null) {
      this.#violation('the reply to subscribe comes before the first publication', 'a reply', `publication ${n}`)
      return
    }
    if (offset <= before.offset)
      this.#violation(
        'publications arrive once and in order',
        at(after(before)),
        `publication ${n} at offset ${offset}`
      )
    else if (this.#guarantee === 'conflated') this.#checkMerged(before, received)
    else if (offset !== before.offset + 1 && !this.#maySkip)
      this.#violation('no publication is missing', at(after(before)), `publication ${n} at offset ${offset}`)
    this.#maySkip = false
    this.#position = { epoch: before.epoch, offset: Math.max(offset, before.offset) }
  }

  /** A publication stands for all since the client's position: it has the newest entry of every key in them. */
  #checkMerged({ epoch, offset: from }: Position, { offset, n, entries }: Received): void {
    const { numbers, offsets } = this.#streams.stream(this.#journal.channel.name, epoch)
    const expected = new Map<string, number>()
    let isComplete = true
    if (offset > from + 1) this.merged++
    for (let each = from + 1; each <= offset; each++) {
      const number = numbers.get(each)
      // Published shortly before the data was lost: neither confirmed nor received by any client as the newest one.
      if (number === undefined) isComplete = false
      else for (const key of keysOf(number)) expected.set(key, number)
    }
    const missing = [...expected].filter(([key, number]) => {
      const received = entries?.get(key)
      return received !== number && (isComplete || received === undefined || offsets.has(received))
    })
    const [first] = missing
    if (first !== undefined)
      this.#violation(
        'a merged publication has the newest entry of every key',
        `entry ${first[1]} of ${first[0]} with publication ${n} at offset ${offset}, after offset ${from}`,
        `entry ${entries?.get(first[0]) ?? 'missing'}, and ${missing.length - 1} more keys without their newest entry`
      )
    for (const [key, number] of entries ?? []) {
      const publishedAt = offsets.get(number) ?? offset
      const known = this.#known.get(key) ?? 0
      if (publishedAt < known)
        this.#violation(
          'an entry of a key is never older than the one before',
          `entry of ${key} from offset ${known} or later`,
          `entry ${number} from offset ${publishedAt}`
        )
      this.#known.set(key, Math.max(known, publishedAt))
    }
  }

  #violation(rule: string, expected: string, received: string): void {
    this.#report({ subject: this.#journal.client, channel: this.#journal.channel.name, rule, expected, received })
  }
}

const at = ({ epoch, offset }: Position): string => `offset ${offset} of epoch ${epoch}`

const after = ({ epoch, offset }: Position): Position => ({ epoch, offset: offset + 1 })

export const violationText = ({ subject, channel, rule, expected, received }: Violation): string =>
  `${rule}: ${subject}${channel === '' ? '' : ` on ${channel}`}: expected ${expected}, received ${received}`
