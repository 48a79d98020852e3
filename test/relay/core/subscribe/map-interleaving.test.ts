import fc from 'fast-check'
import t from 'tap'
import type { MemoryMaps } from '../../../../src/relay/engine/memory-maps.js'
import { CHANNEL, MapModel, type MapRelay, mapRelay, SMALL_PAGES } from '../../../helper/map-relay.js'
import { checkProperty } from '../../../helper/property.js'
import type { FakeClient, Message } from '../../../helper/relay-core.js'
import type { ServerMessage, SubscribeResult } from '../../../helper/server-message.js'

type Change = readonly [key: string, value: number | null]
type Step = { readonly changes: readonly Change[]; readonly inRead: readonly Change[]; readonly isCut: boolean }

const change: fc.Arbitrary<Change> = fc.tuple(
  fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'),
  fc.oneof({ weight: 3, arbitrary: fc.nat(1000) }, { weight: 1, arbitrary: fc.constant(null) })
)
const step: fc.Arbitrary<Step> = fc.record({
  changes: fc.array(change, { maxLength: 3 }),
  inRead: fc.array(change, { maxLength: 2 }),
  isCut: fc.constantFrom(false, false, false, false, true)
})

const apply = (relay: MapRelay, changes: readonly Change[]): void => {
  for (const [key, value] of changes) {
    if (value === null) relay.remove(key)
    else relay.write(key, value)
  }
}

/** Changes that happen while the relay waits for the engine. */
const changeDuringReads = (relay: MapRelay, next: () => readonly Change[]): void => {
  const maps: Pick<MemoryMaps, 'readState' | 'readStream'> = relay.engine.maps
  const readState = maps.readState.bind(maps)
  const readStream = maps.readStream.bind(maps)
  maps.readState = async (...args) => {
    apply(relay, next())
    const page = await readState(...args)
    apply(relay, next())
    return page
  }
  maps.readStream = async (...args) => {
    apply(relay, next())
    const page = await readStream(...args)
    apply(relay, next())
    return page
  }
}

/**
 * Follows a map as the official client does: loads it, recovers after a cut, and starts again if it has to. It moves its position with
 * every page, but applies the pages only when it is live.
 */
class Follower {
  readonly model = new MapModel()
  readonly #pages: SubscribeResult[] = []
  isLive = false
  /** A violation of the protocol. */
  fault: string | null = null
  #position: { readonly offset?: number | undefined; readonly epoch?: string | undefined } | null = null
  #isRecoverable = false
  /** The next request; null while the client is live. */
  #next: Message | null = null
  #offset = 0
  #client: FakeClient

  constructor(client: FakeClient) {
    this.#client = client
    this.#start()
  }

  #start(): void {
    this.isLive = false
    this.#pages.length = 0
    if (this.#isRecoverable && this.#position !== null) this.#next = { phase: 1, recover: true, ...this.#position }
    else this.#restart()
  }

  #restart(): void {
    this.isLive = false
    this.#pages.length = 0
    this.#isRecoverable = false
    this.#position = null
    this.model.state.clear()
    this.#next = { phase: 2 }
  }

  reconnect(client: FakeClient): void {
    this.#client = client
    this.#start()
  }

  /** Sends the next request, if there is one, and handles everything that has arrived. */
  async step(): Promise<void> {
    const request = this.#next
    const messages =
      request === null
        ? this.#client.received()
        : await this.#client.send({ id: 2, subscribe: { channel: CHANNEL, type: 1, ...request } })
    for (const message of messages) this.#handle(message, request)
    if (this.#client.closed !== null) this.fault = `closed: ${this.#client.closed}`
  }

  #handle({ subscribe, error, push }: ServerMessage, request: Message | null): void {
    if (error !== undefined) {
      if (error.code !== 112) this.fault = `error ${error.code}`
      this.#restart()
    } else if (subscribe !== undefined) this.#progress(subscribe, request)
    else if (push?.unsubscribe !== undefined) this.#start()
    else if (push?.pub !== undefined) {
      const { offset } = push.pub
      if (!this.isLive) this.fault = 'a publication before the reply'
      if (offset !== undefined && offset !== ++this.#offset) this.fault = `offset ${offset} after ${this.#offset - 1}`
      if (offset !== undefined) this.#position = { ...this.#position, offset }
      this.model.apply([push.pub])
    }
  }

  #progress(result: SubscribeResult, request: Message | null): void {
    this.#pages.push(result)
    const { phase, cursor, offset, epoch } = result
    this.#position = { offset, epoch }
    const recover = request?.recover === true ? { recover: true } : {}
    this.isLive = phase === undefined
    if (this.isLive) {
      for (const page of this.#pages.splice(0)) this.model.result(page)
      this.#next = null
      this.#isRecoverable = result.recoverable === true
      this.#offset = offset ?? 0
    } else if (phase === 2 && cursor !== undefined) this.#next = { phase: 2, cursor, offset, epoch }
    else this.#next = { phase: 1, offset, epoch, ...recover }
  }
}

const MODES: readonly Message[] = [
  { mode: 'ephemeral', key_ttl: '60s' },
  { mode: 'recoverable', key_ttl: '60s', stream_size: 6 },
  { mode: 'persistent', stream_size: 40 }
]

for (const mode of MODES) {
  t.test(`a client of a map with the mode ${mode.mode} has its entries, whatever changes while it loads`, async (t) => {
    let live = 0
    const property = fc.asyncProperty(
      fc.array(change, { maxLength: 12 }),
      fc.array(step, { maxLength: 40 }),
      async (first, steps) => {
        const relay = mapRelay({ ...mode, ...SMALL_PAGES })
        apply(relay, first)
        let inRead: Change[] = []
        changeDuringReads(relay, () => inRead.splice(0, 1))
        const follower = new Follower(await relay.connected('42'))
        for (const { changes, inRead: next, isCut } of steps) {
          inRead = [...next]
          await follower.step()
          if (isCut) {
            const [connection] = relay.relay.clients
            connection?.connectionLost()
            apply(relay, changes)
            follower.reconnect(await relay.connected('42'))
          } else apply(relay, changes)
        }
        inRead = []
        // Nothing changes any more, so the client becomes live within a bounded number of requests.
        for (let requests = 0; requests < 30 && !follower.isLive; requests++) await follower.step()
        await follower.step()
        if (follower.fault !== null) throw new Error(follower.fault)
        if (!follower.isLive) throw new Error('not live')
        const [expected, found] = [JSON.stringify(await relay.entries()), JSON.stringify(follower.model.entries)]
        if (expected !== found) throw new Error(`the map has ${expected}, the client ${found}`)
        live++
      }
    )
    await checkProperty(t, property, { numRuns: 300 })
    t.ok(live > 0)
  })
}
