/**
 * What the relay guarantees on a channel.
 *
 * - `stream`: every publication once, in order
 * - `conflated`: increasing offsets, and the newest entry of every key
 * - `newest`: as `stream`, except that a recovery delivers the newest publication only
 * - `live`: no history, therefore no recovery: order and uniqueness only
 */
export type Guarantee = 'stream' | 'conflated' | 'newest' | 'live'

export interface SoakChannel {
  readonly name: string
  readonly guarantee: Guarantee
  /** Publications that the relay keeps; a recovery may fail only when more than these were missed. */
  readonly historySize: number
  readonly takesDelta: boolean
  /** How long the publisher waits between two publications. */
  readonly intervalMs: number
}

/** Larger than the number of publications of any run. */
const WHOLE_RUN = 100_000
const OPEN = { allow_subscribe_for_client: true }
const WITH_HISTORY = { ...OPEN, history_ttl: '3600s', force_recovery: true }

interface Kind extends Omit<SoakChannel, 'name'> {
  readonly namespace: string
  readonly channels: number
  readonly options: Readonly<Record<string, unknown>>
}

const KINDS: readonly Kind[] = [
  {
    namespace: 'seq',
    channels: 6,
    guarantee: 'stream',
    historySize: WHOLE_RUN,
    takesDelta: false,
    intervalMs: 100,
    options: { ...WITH_HISTORY, presence: true, join_leave: true }
  },
  {
    namespace: 'delta',
    channels: 2,
    guarantee: 'stream',
    historySize: WHOLE_RUN,
    takesDelta: true,
    intervalMs: 200,
    options: { ...WITH_HISTORY, allowed_delta_types: ['fossil'], delta_publish: true }
  },
  {
    namespace: 'short',
    channels: 2,
    guarantee: 'stream',
    historySize: 20,
    takesDelta: false,
    intervalMs: 100,
    options: WITH_HISTORY
  },
  // Large publications: a reader that stops is closed with 3008.
  {
    namespace: 'bulk',
    channels: 1,
    guarantee: 'stream',
    historySize: 10,
    takesDelta: false,
    intervalMs: 1000,
    options: WITH_HISTORY
  },
  // Large publications too: a reader that stops receives merged ones later.
  {
    namespace: 'floor',
    channels: 2,
    guarantee: 'conflated',
    historySize: 20,
    takesDelta: false,
    intervalMs: 200,
    options: { ...WITH_HISTORY, conflate: 'data[].transmitterId' }
  },
  {
    namespace: 'cache',
    channels: 1,
    guarantee: 'newest',
    historySize: 1,
    takesDelta: false,
    intervalMs: 200,
    options: { ...WITH_HISTORY, force_recovery_mode: 'cache' }
  },
  {
    namespace: 'live',
    channels: 1,
    guarantee: 'live',
    historySize: 0,
    takesDelta: false,
    intervalMs: 200,
    options: OPEN
  }
]

export const CHANNELS: readonly SoakChannel[] = KINDS.flatMap(
  ({ namespace, channels, guarantee, historySize, takesDelta, intervalMs }) =>
    Array.from({ length: channels }, (_, index) => ({
      name: `${namespace}:${index}`,
      guarantee,
      historySize,
      takesDelta,
      intervalMs
    }))
)

export const channelsOf = (...namespaces: readonly string[]): readonly SoakChannel[] =>
  CHANNELS.filter(({ name }) => namespaces.some((namespace) => name.startsWith(`${namespace}:`)))

/** The relay's file. `marker` makes two files differ in a namespace that no client uses. */
export const relayFile = (marker: number): Readonly<Record<string, unknown>> => ({
  client: {
    ping_interval: '10s',
    pong_timeout: '8s',
    // Room for everything that the history of a channel with large publications can hold.
    queue_max_size: 4 * 1024 * 1024,
    recovery_max_publication_limit: WHOLE_RUN
  },
  engine: { redis: { presence_ttl: '10s' } },
  channel: {
    namespaces: [
      ...KINDS.map(({ namespace, historySize, options }) => ({
        name: namespace,
        ...(historySize === 0 ? {} : { history_size: historySize }),
        ...options
      })),
      { name: `unused${marker}`, ...OPEN }
    ]
  }
})

export interface Entry {
  readonly transmitterId: string
  readonly n: number
  readonly filler: string
}

/** The data of a publication. It follows from the channel and the number, so that a receiver can check all of it. */
export type Payload = TextPayload | BatchPayload

export interface TextPayload {
  readonly n: number
  readonly body: string
}

/** The payload of a conflated channel. */
export interface BatchPayload {
  readonly n: number
  readonly type: 'position-batch'
  readonly data: readonly Entry[]
}

/** Numbers from here on belong to bursts, whose publications are large on channels for slow readers. */
export const FIRST_BURST_NUMBER = 1_000_000
const KEYS = 60
const KEYS_PER_BATCH = 20
const SMALL_BYTES = 200
const LARGE_BYTES = 60_000

const isLarge = ({ name, guarantee }: SoakChannel, n: number): boolean =>
  n >= FIRST_BURST_NUMBER && (guarantee === 'conflated' || name.startsWith('bulk:'))

export const keysOf = (n: number): readonly string[] =>
  Array.from({ length: KEYS_PER_BATCH }, (_, index) => `t${(n * 7 + index) % KEYS}`)

const bytesOf = (channel: SoakChannel, n: number): number => (isLarge(channel, n) ? LARGE_BYTES : SMALL_BYTES)

export const payloadOf = (channel: SoakChannel, n: number): Payload =>
  channel.guarantee === 'conflated' ? batchOf(channel, n) : textOf(channel, n)

export const textOf = (channel: SoakChannel, n: number): TextPayload => ({ n, body: bodyOf(n, bytesOf(channel, n)) })

export const batchOf = (channel: SoakChannel, n: number): BatchPayload => {
  const filler = 'x'.repeat(Math.floor(bytesOf(channel, n) / KEYS_PER_BATCH))
  return { n, type: 'position-batch', data: keysOf(n).map((transmitterId) => ({ transmitterId, n, filler })) }
}

/** Most of it is the same for all numbers, so that a delta is shorter than the whole. */
const bodyOf = (n: number, bytes: number): string =>
  `${'0123456789'.repeat(bytes / 20)}${n}${'abcdefghij'.repeat(bytes / 20)}`
