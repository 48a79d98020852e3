import { setTimeout } from 'node:timers/promises'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { required } from '../../helper/required.js'
import { CHANNELS, channelsOf, type SoakChannel } from './channels.js'
import { checkWorkers, clientFaults, type Fault, redisFaults, workerFaults } from './faults.js'
import type { Journal, Position } from './journal.js'
import { Random } from './random.js'
import type { Report, Subscriber } from './subscriber.js'
import { addSubscribers, RedisNodes, type Topology, WorkerRelay } from './topology.js'
import { type Violation, verify, violationText } from './verifier.js'

export interface SoakOptions {
  readonly seed: number
  /** The run lasts at least so long and has at least so many faults; the later of both ends it. */
  readonly seconds: number
  readonly faults: number
  readonly clients: number
}

/** The minimum number of kinds of faults, unless there are fewer faults. */
const MIN_KINDS = 10

export const DEFAULTS: Omit<SoakOptions, 'seed'> = { seconds: 120, faults: 30, clients: 240 }

export interface SoakResult {
  readonly violations: readonly Violation[]
  readonly deliveries: number
  readonly faults: number
  readonly kinds: number
}

/** The share of the clients at the three nodes; the others connect to the relay with workers. */
const REDIS_SHARE = 2 / 3
const PAUSE_MS = { low: 100, high: 1_500 }
/** For conditions that must hold in the end, also on a slow machine. */
const SETTLE_MS = 180_000

export interface SoakParts {
  readonly t: Teardown
  /** The folder of the config files. */
  readonly folder: string
  readonly print: (line: string) => void
}

/** Runs relays and clients through random faults and verifies every delivery. */
export const soak = async (options: SoakOptions, { t, folder, print }: SoakParts): Promise<SoakResult> => {
  const random = new Random(options.seed)
  const violations: Violation[] = []
  const report: Report = (violation) => {
    violations.push(violation)
    print(`VIOLATION ${violationText(violation)}`)
  }
  print(`seed ${options.seed}: at least ${options.seconds} s, ${options.faults} faults, ${options.clients} clients`)

  const parts = { t, folder, report }
  const [nodes, workers] = await Promise.all([
    RedisNodes.start({ ...parts, random: random.fork() }),
    WorkerRelay.start({ ...parts, random: random.fork() })
  ])
  const topologies: readonly Topology[] = [nodes, workers]
  const leave = (): void => {
    for (const { api, subscribers } of topologies) {
      api.end()
      for (const subscriber of subscribers) subscriber.stop()
    }
  }
  t.teardown(leave)
  addSubscribers(nodes, Math.round(options.clients * REDIS_SHARE), random.fork())
  addSubscribers(workers, Math.round(options.clients * (1 - REDIS_SHARE)), random.fork())
  await eventually(() => topologies.every(areSubscribed), {
    label: 'all clients are subscribed',
    deadlineMs: SETTLE_MS
  })
  for (const { publisher } of topologies) publisher.start(CHANNELS)

  const run = new FaultRun(options, random, print, report)
  await run.all([redisFaults(nodes), workerFaults(workers, report), clientFaults(topologies, report)])

  print(`${run.elapsed()} all faults have ended, waiting until every client has received everything`)
  checkWorkers(workers, report)
  const ends = await Promise.all(topologies.map((topology) => settle(topology, report)))
  leave()
  await Promise.all(topologies.flatMap(({ relays }) => relays.map((relay) => relay.stop())))

  const verdicts = topologies.map(({ subscribers, publisher: { acknowledged }, dataLosses }, index) =>
    verify({
      journals: subscribers.flatMap(({ journals }) => journals),
      acknowledged,
      ends: ends[index] ?? new Map(),
      dataLosses
    })
  )
  for (const verdict of verdicts) verdict.violations.forEach(report)
  const sum = (field: (verdict: (typeof verdicts)[number]) => number): number =>
    verdicts.reduce((total, verdict) => total + field(verdict), 0)
  const result = {
    violations,
    deliveries: sum(({ deliveries }) => deliveries),
    faults: run.faults,
    kinds: run.kinds
  }
  const clients = topologies.flatMap(({ subscribers }) => subscribers)
  print(`connections ended by code: ${closesText(clients)}`)
  print(
    [
      `${result.deliveries} deliveries checked`,
      `${topologies.reduce((total, { publisher }) => total + publisher.acknowledged.length, 0)} publications confirmed`,
      `${clients.reduce((total, { connects }) => total + connects, 0)} connections of ${clients.length} clients`,
      `${sum(({ merged }) => merged)} merged deliveries`,
      `${sum(({ recoveries }) => recoveries)} recoveries, ${sum(({ failedRecoveries }) => failedRecoveries)} of them failed as announced`,
      `${result.faults} faults of ${result.kinds} kinds`,
      `${violations.length} violations`
    ].join(', ')
  )
  return result
}

const closesText = (clients: readonly Subscriber[]): string => {
  const total = new Map<number, number>()
  for (const { closes } of clients) {
    for (const [code, count] of closes) total.set(code, (total.get(code) ?? 0) + count)
  }
  return [...total]
    .toSorted(([one], [other]) => one - other)
    .map(([code, count]) => `${code}: ${count}`)
    .join(', ')
}

const isSteady = ({ journals }: Subscriber): boolean => journals.every(({ isTemporary }) => !isTemporary)

const areSubscribed = ({ subscribers }: Topology): boolean =>
  subscribers.filter(isSteady).every(({ isSubscribed }) => isSubscribed)

/** Runs from this length on include faults that last long. */
const LONG_SECONDS = 60

/** Several sequences of faults at the same time; within a sequence one follows the other. */
class FaultRun {
  faults = 0
  readonly #kinds = new Set<string>()
  readonly #options: SoakOptions
  readonly #random: Random
  readonly #print: (line: string) => void
  readonly #report: Report
  readonly #started = performance.now()
  #hasFailed = false

  constructor(options: SoakOptions, random: Random, print: (line: string) => void, report: Report) {
    this.#options = options
    this.#random = random
    this.#print = print
    this.#report = report
  }

  get kinds(): number {
    return this.#kinds.size
  }

  elapsed(): string {
    return `${((performance.now() - this.#started) / 1000).toFixed(1).padStart(6)} s`
  }

  async all(sequences: readonly (readonly Fault[])[]): Promise<void> {
    const isLong = this.#options.seconds >= LONG_SECONDS
    await Promise.all(
      sequences.map((faults) =>
        this.#sequence(
          faults.filter((fault) => isLong || fault.isLong !== true),
          this.#random.fork()
        )
      )
    )
  }

  /** Every kind once in random order, then again in another order. */
  async #sequence(faults: readonly Fault[], random: Random): Promise<void> {
    let queue: Fault[] = []
    while (!this.#isOver) {
      if (queue.length === 0) queue = random.shuffled(faults)
      const fault = required(queue.pop())
      const done = await this.#run(fault, random)
      if (done === null) break
      this.faults++
      this.#kinds.add(fault.kind)
      this.#print(`${this.elapsed()} ${fault.kind.padEnd(26)} ${done}`)
      await setTimeout(random.whole(PAUSE_MS.low, PAUSE_MS.high))
    }
  }

  /** Null where the relays did not recover: the run ends then. */
  async #run(fault: Fault, random: Random): Promise<string | null> {
    try {
      return await fault.run(random)
    } catch (error) {
      this.#hasFailed = true
      this.#report({
        subject: fault.kind,
        channel: '',
        rule: 'relays recover from a fault',
        expected: 'healthy relays',
        received: error instanceof Error ? error.message : String(error)
      })
      return null
    }
  }

  get #isOver(): boolean {
    const { seconds, faults } = this.#options
    const isLongEnough = performance.now() - this.#started >= seconds * 1000
    return this.#hasFailed || (isLongEnough && this.faults >= faults && this.kinds >= Math.min(MIN_KINDS, faults))
  }
}

/** Waits until every client has received everything. Resolves with the ends of the streams, as far as they are known. */
const settle = async (topology: Topology, report: Report): Promise<ReadonlyMap<string, Position>> => {
  const ends = new Map<string, Position>()
  try {
    await reachEnds(topology, ends, report)
  } catch (error) {
    report({
      subject: topology.name,
      channel: '',
      rule: 'relays recover when the faults have ended',
      expected: 'everything published and received',
      received: error instanceof Error ? error.message : String(error)
    })
  }
  return ends
}

/** Ends the publishing and waits until every client is at the end of every stream. */
const reachEnds = async (topology: Topology, ends: Map<string, Position>, report: Report): Promise<void> => {
  const { relays, publisher, api, subscribers } = topology
  await Promise.all(relays.map((relay) => relay.healthy()))
  const stopped = publisher.stop().then(() => true)
  await eventually(() => stopped, { label: `everything is published on ${topology.name}`, deadlineMs: SETTLE_MS })
  const live = channelsOf('live')
  for (const channel of CHANNELS) if (!live.includes(channel)) await publisher.next(channel)

  for (const channel of CHANNELS) {
    if (live.includes(channel)) continue
    const { epoch = '', offset = 0 } = await api.call('history', { channel: channel.name, limit: 0 })
    ends.set(channel.name, { epoch, offset })
  }
  const journals = subscribers.filter(isSteady).flatMap((subscriber) => subscriber.journals)
  const isAtEnd = ({ channel: { name }, position }: Journal): boolean => {
    const end = ends.get(name)
    return position !== null && end !== undefined && position.epoch === end.epoch && position.offset === end.offset
  }
  // The verifier names each client that is not there.
  await settled(() => journals.every((journal) => live.includes(journal.channel) || isAtEnd(journal)))
  for (const channel of live) await reachLiveClients(topology, channel, journals, report)
  await checkPresence(topology, journals, report)
}

/** A channel without history has no recovery, so a client may miss one: each must receive one of those from here on. */
const reachLiveClients = async (
  { publisher }: Topology,
  channel: SoakChannel,
  journals: readonly Journal[],
  report: Report
): Promise<void> => {
  const waiting = new Set(journals.filter((journal) => journal.channel === channel))
  const first = await publisher.next(channel)
  await settled(async () => {
    for (const journal of waiting) if (journal.newest >= first) waiting.delete(journal)
    if (waiting.size > 0) await publisher.next(channel)
    return waiting.size === 0
  })
  for (const { client, newest } of waiting) {
    report({
      subject: client,
      channel: channel.name,
      rule: 'every client receives publications when the faults have ended',
      expected: `publication ${first} or later`,
      received: `publication ${newest} as the last one`
    })
  }
}

/** Presence lists the clients that are there; those of a node that was killed are removed after a while. */
const checkPresence = async ({ api }: Topology, journals: readonly Journal[], report: Report): Promise<void> => {
  for (const channel of channelsOf('seq')) {
    const expected = journals.filter((journal) => journal.channel === channel).length
    let listed = 0
    await settled(async () => {
      const { num_clients } = await api.call('presence_stats', { channel: channel.name })
      listed = Number(num_clients)
      return listed === expected
    })
    if (listed === expected) continue
    report({
      subject: 'presence',
      channel: channel.name,
      rule: 'presence lists exactly the clients that are subscribed',
      expected: `${expected} clients`,
      received: `${listed} clients`
    })
  }
}

/** Waits for the condition, but not for ever: the caller reports a violation if it does not hold then. */
const settled = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
  await eventually(condition, { deadlineMs: SETTLE_MS }).catch(() => undefined)
}
