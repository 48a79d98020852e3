import { randomUUID } from 'node:crypto'
import {
  type ChannelStateEvent,
  type ChannelStateRules,
  type ChannelStates,
  EngineError,
  type TakenStateEvents
} from '../../core/engine.js'
import { type BackgroundDependencies, runInBackground } from '../../core/session/context.js'
import { chunks } from './batching.js'
import { listReply, stringListReply } from './connection.js'
import { CONTROL, presenceKeys } from './keys.js'
import type { Script } from './lua-script.js'
import {
  STATE_FINISH,
  STATE_FORGET,
  STATE_INDEX_CLAIM,
  STATE_INDEX_COUNT,
  STATE_INDEX_WRITE,
  STATE_TAKE
} from './presence-scripts.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'

const CHANNELS_PER_SCRIPT = 200
/** How long a node may take to check channels without taking events. */
const CHECK_MS = 10_000
/** For how long a channel must be without a proxy before its state is removed: nodes are configured one after the other. */
const FORGET_AFTER_MS = 3_600_000
const FORGET_ARGUMENTS = [String(FORGET_AFTER_MS), String(CHECK_MS)]
/** When to look again at a server that could not be reached. */
const RETRY_MS = 1_000

/** Channels of one index that no other node checks until the claim ends. */
interface Claim {
  readonly endsAt: string
  readonly channels: readonly string[]
  /** Time until the next check of another channel. */
  readonly nextMs: number
}

/** When to check a channel; -1: not any more. `claim`: when the claim of the channel ends, '' if it has none. */
interface NextCheck {
  readonly channel: string
  readonly waitMs: number
  readonly claim: string
}

/** Channel states of all nodes. presence-scripts.ts describes the stored data. */
export class RedisChannelStates implements ChannelStates {
  /** Writes the presence of this node again. */
  renewPresence = (): void => undefined
  readonly #router: ShardRouter
  readonly #presenceTtlMs: number
  readonly #background: BackgroundDependencies
  #rules: ChannelStateRules | null = null
  #listener: (proxy: string) => void = () => undefined
  /** When the claims of taken events end. */
  readonly #claims = new WeakMap<ChannelStateEvent, string>()
  /** Changes of this event loop turn: by proxy, the time until the check of each channel, or -1 if its state was removed. */
  readonly #changes = new Map<string, Map<string, number>>()
  #writing: Promise<void> = Promise.resolve()
  #takes = 0

  constructor(router: ShardRouter, presenceTtlMs: number, background: BackgroundDependencies) {
    this.#router = router
    this.#presenceTtlMs = presenceTtlMs
    this.#background = background
  }

  configure(rules: ChannelStateRules | null): void {
    this.#rules = rules
    // Channels that have a proxy from now on have no state yet.
    if (rules !== null) this.renewPresence()
  }

  /** Null if the channel has no state events. */
  proxyOf(channel: string): string | null {
    return this.#rules === null ? null : this.#rules.proxyOf(channel)
  }

  get vacatedDelayMs(): number {
    return this.#rules?.vacatedDelayMs ?? 0
  }

  /** Called with the reply of a script that has written the presence of a channel. */
  presenceWritten(channel: string, proxy: string, reply: unknown, isRenewal = false): void {
    if (reply !== null) this.#addChange(proxy, channel, Number(reply))
    // Repairs an index that could not be written at the time of the change.
    else if (isRenewal) this.#addChange(proxy, channel, this.#presenceTtlMs)
  }

  async take(proxy: string, limit: number, leaseMs: number): Promise<TakenStateEvents> {
    const events: ChannelStateEvent[] = []
    let nextMs = Number.POSITIVE_INFINITY
    for (const shard of this.#shardsInTurn()) {
      if (events.length >= limit) return { events, nextMs: 0 }
      try {
        const claim = await this.#claim(shard, proxy, leaseMs, limit - events.length)
        const checked = await this.#check(proxy, claim, leaseMs)
        nextMs = Math.min(nextMs, checked.nextMs)
        events.push(...checked.events)
      } catch (error) {
        if (!(error instanceof EngineError)) throw error
        nextMs = Math.min(nextMs, RETRY_MS)
      }
    }
    return { events, nextMs }
  }

  confirm(proxy: string, events: readonly ChannelStateEvent[]): Promise<void> {
    return this.#finish(proxy, events, '1')
  }

  release(proxy: string, events: readonly ChannelStateEvent[]): Promise<void> {
    return this.#finish(proxy, events, '0')
  }

  async countDue(proxy: string): Promise<number> {
    const counts = this.#router.controlShards.map((shard) => this.#runIndexScript(shard, proxy, STATE_INDEX_COUNT, []))
    return (await Promise.all(counts)).reduce<number>((sum, count) => sum + Number(count), 0)
  }

  onDue(listener: (proxy: string) => void): void {
    this.#listener = listener
  }

  /** Empties the indexes of proxies that the configuration does not name any more: `take` assigns each channel anew. */
  async sweep(): Promise<void> {
    const rules = this.#rules
    if (rules === null) return
    for (const { commands } of this.#router.controlShards) {
      const names = await commands.send('smembers', [this.#router.keys.control(CONTROL.stateProxies)]).catch(() => [])
      for (const name of stringListReply(names).filter((name) => !rules.proxies.has(name))) {
        let nextMs = 0
        while (nextMs === 0) ({ nextMs } = await this.take(name, CHANNELS_PER_SCRIPT, CHECK_MS))
      }
    }
  }

  /** Writes what has changed so far. */
  async close(): Promise<void> {
    await this.#writeChanges()
    await this.#writing
  }

  /** All servers with an index, beginning with another one each time, so that none waits for the others. */
  #shardsInTurn(): readonly Shard[] {
    const shards = this.#router.controlShards
    const first = this.#takes++ % Math.max(shards.length, 1)
    return [...shards.slice(first), ...shards.slice(0, first)]
  }

  /** Claims the given channels, or those that are due. */
  async #claim(
    shard: Shard,
    proxy: string,
    lengthMs: number,
    limit: number,
    channels: readonly string[] = []
  ): Promise<Claim> {
    const args = [String(limit), String(lengthMs), ...channels]
    const [endsAt, nextMs, claimed] = listReply(await this.#runIndexScript(shard, proxy, STATE_INDEX_CLAIM, args))
    return {
      endsAt: String(endsAt),
      channels: stringListReply(claimed),
      nextMs: Number(nextMs) < 0 ? Number.POSITIVE_INFINITY : Number(nextMs)
    }
  }

  /** Checks the channels of a claim and takes their events; none with a lease of 0. */
  async #check(proxy: string, { endsAt, channels, nextMs }: Claim, leaseMs: number): Promise<TakenStateEvents> {
    const events: ChannelStateEvent[] = []
    const next: NextCheck[] = []
    await eachDespiteErrors(channels, async (channel) => {
      const [waitMs, id, state, timeMs] = await this.#checkChannel(proxy, channel, leaseMs)
      if (id === undefined) {
        next.push({ channel, waitMs: Number(waitMs), claim: endsAt })
        return
      }
      const type = state === 'o' ? 'occupied' : 'vacated'
      const event: ChannelStateEvent = { id: String(id), channel, type, timeMs: Number(timeMs) }
      this.#claims.set(event, endsAt)
      events.push(event)
    })
    await this.#writeIndex(proxy, next)
    const waits = next.map(({ waitMs }) => waitMs).filter((waitMs) => waitMs >= 0)
    return { events, nextMs: Math.min(nextMs, ...waits) }
  }

  /** Returns the time until the next check, or -1, and the event that was taken. */
  async #checkChannel(proxy: string, channel: string, leaseMs: number): Promise<readonly unknown[]> {
    const assigned = this.proxyOf(channel)
    if (assigned === proxy) {
      const args = [String(this.vacatedDelayMs), String(leaseMs), leaseMs === 0 ? '' : randomUUID()]
      return listReply(await this.#runStateScript(channel, STATE_TAKE, args))
    }
    if (assigned === null) return [await this.#runStateScript(channel, STATE_FORGET, FORGET_ARGUMENTS)]
    this.#addChange(assigned, channel, 0)
    return [-1]
  }

  async #finish(proxy: string, events: readonly ChannelStateEvent[], isConfirmed: '1' | '0'): Promise<void> {
    const next: NextCheck[] = []
    await eachDespiteErrors(events, async (event) => {
      const { channel, id } = event
      const args = [String(this.vacatedDelayMs), id, isConfirmed]
      const waitMs = Number(await this.#runStateScript(channel, STATE_FINISH, args))
      next.push({ channel, waitMs, claim: this.#claims.get(event) ?? '' })
    })
    await this.#writeIndex(proxy, next)
  }

  /** Collects the changes of an event loop turn, so that they are written together. */
  #addChange(proxy: string, channel: string, waitMs: number): void {
    if (this.#changes.size === 0)
      setImmediate(() => {
        this.#writing = this.#writeChanges()
        runInBackground(this.#background, () => this.#writing)
      })
    const changes = this.#changes.get(proxy)
    if (changes === undefined) this.#changes.set(proxy, new Map([[channel, waitMs]]))
    else changes.set(channel, Math.min(waitMs, changes.get(channel) ?? waitMs))
  }

  async #writeChanges(): Promise<void> {
    const changes = [...this.#changes]
    this.#changes.clear()
    await eachDespiteErrors(changes, async ([proxy, waits]) => {
      const all = [...waits].map(([channel, waitMs]) => ({ channel, waitMs, claim: '' }))
      await this.#writeIndex(
        proxy,
        all.filter(({ waitMs }) => waitMs >= 0)
      )
      this.#listener(proxy)
      await this.#checkRemoved(
        proxy,
        all.filter(({ waitMs }) => waitMs < 0)
      )
    })
  }

  /** Removes channels from the index if they have no state. Their next subscriber may have arrived already. */
  async #checkRemoved(proxy: string, removed: readonly NextCheck[]): Promise<void> {
    await eachDespiteErrors(this.#byShard(removed), async ([shard, checks]) => {
      const channels = checks.map(({ channel }) => channel)
      await this.#check(proxy, await this.#claim(shard, proxy, CHECK_MS, 0, channels), 0)
    })
  }

  async #writeIndex(proxy: string, checks: readonly NextCheck[]): Promise<void> {
    await eachDespiteErrors(this.#byShard(checks), async ([shard, part]) => {
      const args = part.flatMap(({ channel, waitMs, claim }) => [channel, String(waitMs), claim])
      await this.#runIndexScript(shard, proxy, STATE_INDEX_WRITE, args)
    })
  }

  /** Groups channels by the server of their index, in parts for one script each. */
  #byShard(checks: readonly NextCheck[]): readonly (readonly [Shard, readonly NextCheck[]])[] {
    const byShard = new Map<Shard, NextCheck[]>()
    for (const check of checks) {
      const shard = this.#router.controlShardOf(check.channel)
      const known = byShard.get(shard)
      if (known === undefined) byShard.set(shard, [check])
      else known.push(check)
    }
    return [...byShard].flatMap(([shard, all]) =>
      chunks(all, CHANNELS_PER_SCRIPT).map((part) => [shard, part] as const)
    )
  }

  #runIndexScript(shard: Shard, proxy: string, script: Script, args: readonly string[]): Promise<unknown> {
    const keys = [CONTROL.stateIndex(proxy), CONTROL.stateProxies]
    return this.#router.runControlScript(shard, script, keys, [proxy, ...args])
  }

  #runStateScript(channel: string, script: Script, args: readonly string[]): Promise<unknown> {
    return this.#router.runScript(channel, script, presenceKeys(this.#router.keys.channel(channel)), () => args)
  }
}

/** Skips what Redis cannot do now: the claim of the channel ends, or its presence is renewed, and a node tries again. */
const eachDespiteErrors = async <T>(list: readonly T[], work: (each: T) => Promise<void>): Promise<void> => {
  for (const outcome of await Promise.allSettled(list.map(work))) {
    if (outcome.status === 'rejected' && !(outcome.reason instanceof EngineError)) throw outcome.reason
  }
}
