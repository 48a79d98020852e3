import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import type { ChannelStateEvent } from '../../../src/relay/core/engine.js'
import { STATE_RULES } from '../../helper/channel-state-rules.js'
import { eventually } from '../../helper/eventually.js'
import { checkProperty } from '../../helper/property.js'
import type { StatesUnderTest } from './channel-state-contract.js'
import { Delivered } from './contract.js'

type Step =
  | { readonly kind: 'join' | 'leave'; readonly channel: string; readonly client: string }
  | { readonly kind: 'take'; readonly limit: number }
  | { readonly kind: 'confirm' | 'release'; readonly count: number }

const CHANNELS = ['room:1', 'room:2', 'room:3']
const LEASE_MS = 600_000

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constantFrom('join' as const, 'leave' as const),
        channel: fc.constantFrom(...CHANNELS),
        client: fc.constantFrom('c1', 'c2')
      })
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('take' as const), limit: fc.integer({ min: 1, max: 3 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom('confirm' as const, 'release' as const),
        count: fc.integer({ min: 1, max: 2 })
      })
    }
  ),
  { maxLength: 40 }
)

/** What a backend knows, and checks that no engine may break its rules. */
class Backend {
  /** Taken, and neither confirmed nor released. */
  readonly sending: ChannelStateEvent[] = []
  /** The last event of each channel, and whether it was confirmed. */
  readonly #last = new Map<string, { readonly event: ChannelStateEvent; isConfirmed: boolean }>()

  take(events: readonly ChannelStateEvent[]): void {
    for (const event of events) {
      const last = this.#last.get(event.channel)
      if (this.sending.some(({ channel }) => channel === event.channel)) throw new Error('an event is leased twice')
      if (last === undefined || last.isConfirmed) {
        const before = last?.event.type ?? 'vacated'
        if (event.type === before) throw new Error(`${event.type} twice for ${event.channel}`)
        if (event.id === last?.event.id) throw new Error('a confirmed event is repeated')
        this.#last.set(event.channel, { event, isConfirmed: false })
      } else if (event.id !== last.event.id || event.type !== last.event.type)
        throw new Error('an unconfirmed event is replaced')
      this.sending.push(event)
    }
  }

  confirm(events: readonly ChannelStateEvent[]): void {
    for (const { channel } of events) {
      const last = this.#last.get(channel)
      if (last !== undefined) last.isConfirmed = true
    }
  }

  isOccupied(channel: string): boolean {
    return this.#last.get(channel)?.event.type === 'occupied'
  }
}

/** Compares an engine with the rules of channel states, under random subscribers and senders. */
export const channelStateModel = (
  name: string,
  create: (t: Test) => Promise<StatesUnderTest>,
  { runs }: { readonly runs: number }
): void => {
  t.test(`random subscribers and senders of ${name}: events alternate, and end with the present state`, async (t) => {
    const { broker, presence, channelStates } = await create(t)
    await broker.start(new Delivered())
    // Without a delay, no time has to pass.
    channelStates.configure({ ...STATE_RULES, vacatedDelayMs: 0 })
    let run = 0
    const property = fc.asyncProperty(steps, async (all) => {
      const backend = new Backend()
      const present = new Map<string, Set<string>>()
      const number = run++
      const unique = (channel: string): string => `${channel}/${number}`
      const take = async (limit: number): Promise<void> =>
        backend.take((await channelStates.take('default', limit, LEASE_MS)).events)
      const confirm = async (count: number): Promise<void> => {
        const events = backend.sending.splice(0, count)
        await channelStates.confirm('default', events)
        backend.confirm(events)
      }
      const perform = async (step: Step): Promise<void> => {
        if ('limit' in step) await take(step.limit)
        else if ('channel' in step) {
          const channel = unique(step.channel)
          const clients = present.get(channel) ?? new Set()
          present.set(channel, clients)
          if (step.kind === 'join') {
            clients.add(step.client)
            await presence.add(channel, step.client, 'ada', '{}')
          } else if (clients.delete(step.client)) await presence.remove(channel, step.client)
        } else if (step.kind === 'confirm') await confirm(step.count)
        else await channelStates.release('default', backend.sending.splice(0, step.count))
      }
      for (const step of all) await perform(step)
      const isSettled = (): boolean =>
        [...present].every(([channel, clients]) => backend.isOccupied(channel) === clients.size > 0)
      await eventually(async () => {
        await confirm(backend.sending.length)
        await take(10)
        return backend.sending.length === 0 && isSettled()
      })
      // Leaves nothing to the next run.
      for (const [channel, clients] of present) for (const client of clients) await presence.remove(channel, client)
      present.clear()
      await eventually(async () => {
        await confirm(backend.sending.length)
        await take(10)
        return backend.sending.length === 0 && CHANNELS.every((channel) => !backend.isOccupied(unique(channel)))
      })
    })
    await checkProperty(t, property, { numRuns: runs })
  })
}
