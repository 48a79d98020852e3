import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import type { HistoryRange } from '../../../src/relay/core/engine.js'
import type { NewPublication, Payload, Position, Publication } from '../../../src/relay/core/publication.js'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { recoverFromStream } from '../../../src/relay/core/subscribe/recovery.js'
import { checkProperty } from '../../helper/property.js'
import { Delivered, type EngineUnderTest, WITH_HISTORY } from './contract.js'

const IDEMPOTENT_RESULT_MS = 300_000
/** Two of them are longer than `history_ttl`. It divides no TTL, because real time also passes in between. */
const WAIT_MS = 31_000

type Step =
  | { readonly kind: 'publish'; readonly atOnce: readonly Partial<NewPublication>[] }
  | { readonly kind: 'read'; readonly back: number; readonly limit: number; readonly reverse: boolean }
  | { readonly kind: 'recover'; readonly back: number; readonly limit: number }
  | { readonly kind: 'remove' | 'wait' }

const anyPublication: fc.Arbitrary<Partial<NewPublication>> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  fc.constant({ skipHistory: true }),
  fc.record({ idempotencyKey: fc.constantFrom('a', 'b') }),
  fc.record({ idempotencyKey: fc.constantFrom('c', 'd'), skipHistory: fc.constant(true) }),
  fc.record({ version: fc.integer({ min: 1, max: 4 }), versionEpoch: fc.constantFrom('', 'v') }),
  fc.record({ tags: fc.constantFrom('{}', '{"é":"\\n"}'), info: fc.constant('{"user":"u"}'), delta: fc.boolean() })
)

const publishing = fc.record({
  kind: fc.constant('publish' as const),
  atOnce: fc.oneof(
    { weight: 3, arbitrary: fc.tuple(anyPublication) },
    fc.array(anyPublication, { minLength: 2, maxLength: 6 }),
    // More than an engine combines in one call.
    fc.array(anyPublication, { minLength: 17, maxLength: 40, size: 'max' })
  )
})

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: publishing },
    fc.record({
      kind: fc.constant('read' as const),
      back: fc.integer({ min: -1, max: 5 }),
      limit: fc.integer({ min: -1, max: 4 }),
      reverse: fc.boolean()
    }),
    fc.record({
      kind: fc.constant('recover' as const),
      back: fc.integer({ min: 0, max: 6 }),
      limit: fc.integer({ min: 1, max: 5 })
    }),
    fc.record({ kind: fc.constantFrom('remove' as const, 'wait' as const) })
  ),
  { maxLength: 25 }
)

/** The specification of an engine, for one channel. */
class Model {
  /** Every publication of the stream, by offset. */
  readonly stream: Payload[] = []
  readonly delivered: (readonly [data: Payload, offset: number])[] = []
  /** The offsets in the history, and when each expires. */
  #retained: { readonly offset: number; readonly until: number }[] = []
  #nowMs = 0
  #version = 0
  #versionEpoch = ''
  readonly #results = new Map<string, { readonly offset: number; readonly until: number }>()

  publish({ data, skipHistory, idempotencyKey, version, versionEpoch }: NewPublication): number {
    const known = this.#results.get(idempotencyKey)
    if (idempotencyKey !== '' && known !== undefined && this.#nowMs < known.until) return known.offset
    const isOld =
      version > 0 && version <= this.#version && (versionEpoch === '' || versionEpoch === this.#versionEpoch)
    if (!skipHistory && isOld) return this.stream.length
    const offset = skipHistory ? 0 : this.stream.push(data)
    if (!skipHistory) {
      const until = this.#nowMs + WITH_HISTORY.historyTtlMs
      this.#retained = [...this.#retained, { offset, until }].slice(-WITH_HISTORY.historySize)
      if (version > 0) {
        this.#version = version
        this.#versionEpoch = versionEpoch
      }
    }
    this.delivered.push([data, offset])
    if (idempotencyKey !== '') this.#results.set(idempotencyKey, { offset, until: this.#nowMs + IDEMPOTENT_RESULT_MS })
    return offset
  }

  read({ since, limit, reverse }: HistoryRange): readonly number[] {
    const found = this.retained.filter(
      (offset) => since === null || (reverse ? offset < since.offset : offset > since.offset)
    )
    const ordered = reverse ? found.toReversed() : found
    return limit < 0 ? ordered : ordered.slice(0, limit)
  }

  get retained(): readonly number[] {
    return this.#retained.map(({ offset }) => offset)
  }

  remove(): void {
    this.#retained = []
  }

  wait(): void {
    this.#nowMs += WAIT_MS
    this.#retained = this.#retained.filter(({ until }) => this.#nowMs < until)
  }
}

/** Compares an engine with the model over random sequences of operations. */
export const engineModel = (
  name: string,
  create: (t: Test) => Promise<EngineUnderTest>,
  { runs = 100 }: { readonly runs?: number } = {}
): void => {
  t.test(`${name} and a model of it`, async (t) => {
    t.test('history, recovery and deliveries agree with the model', async (t) => {
      const { broker, history, advance } = await create(t)
      const delivered = new Delivered()
      await broker.start(delivered)
      let channels = 0

      const run = async (all: readonly Step[]): Promise<void> => {
        const channel = `ns:${++channels}`
        const model = new Model()
        await broker.subscribe(channel)
        const top = { since: null, limit: 0, reverse: false }
        const { epoch } = await history.read(channel, top, WITH_HISTORY)
        const check = async (range: HistoryRange): Promise<readonly Publication[]> => {
          const page = await history.read(channel, range, WITH_HISTORY)
          const oldest = model.retained[0] ?? model.stream.length + 1
          equal([page.epoch, page.offset, page.oldest], [epoch, model.stream.length, oldest])
          equal(
            page.publications.map(({ offset, data }) => [offset, data]),
            model.read(range).map((offset) => [offset, model.stream[offset - 1]])
          )
          return page.publications
        }
        const positionBack = (back: number): Position => ({ epoch, offset: Math.max(0, model.stream.length - back) })

        for (const [index, step] of all.entries()) {
          if (step.kind === 'publish') {
            const publications = step.atOnce.map((more, position) => ({
              ...PLAIN_PUBLICATION,
              data: `"${index}.${position} é"`,
              ...more
            }))
            const published = await Promise.all(publications.map((each) => broker.publish(channel, each, WITH_HISTORY)))
            equal(
              published.map(({ offset }) => offset),
              publications.map((each) => model.publish(each))
            )
          } else if (step.kind === 'read') {
            const since = step.back < 0 ? null : positionBack(step.back)
            await check({ since, limit: step.limit, reverse: step.reverse })
          } else if (step.kind === 'recover') {
            const position = positionBack(step.back)
            const publications = await check({ since: position, limit: step.limit, reverse: false })
            const recovery = recoverFromStream(position, { epoch, offset: model.stream.length, publications })
            const missed = model.stream.length - position.offset
            const isWhole =
              missed <= step.limit && model.read({ since: position, limit: -1, reverse: false }).length === missed
            equal(
              recovery?.publications.map(({ data }) => data) ?? null,
              isWhole ? model.stream.slice(position.offset) : null
            )
          } else if (step.kind === 'remove') {
            await history.remove(channel)
            model.remove()
          } else {
            await advance(WAIT_MS)
            model.wait()
          }
        }
        const received = () => delivered.publications.filter(([each]) => each === channel)
        while (received().length < model.delivered.length) await delivered.until(delivered.publications.length + 1)
        equal(
          received().map(([, { data, offset }]) => [data, offset]),
          model.delivered
        )
        await broker.unsubscribe(channel)
      }
      await checkProperty(t, fc.asyncProperty(steps, run), { numRuns: runs })
    })
  })
}

const equal = (found: unknown, wanted: unknown): void => {
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`)
}
