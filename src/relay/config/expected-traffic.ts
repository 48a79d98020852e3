import type { ChannelRules } from '../core/options.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Channels that are expected to receive publications regularly. A check on the operators' page reports when they stop. */
export interface ExpectedTraffic {
  /** The id and title of the check. */
  readonly id: string
  readonly title: string
  readonly namespace: string
  /** Null for all channels of the namespace. */
  readonly channel: string | null
  /** The check is green for this time after the last publication, */
  readonly greenMs: number
  /** and red after this time. */
  readonly redMs: number
  /** The check is red at this time after the start if there was no publication. */
  readonly redAfterStartMs: number
  readonly texts: {
    readonly active: string
    readonly never: string
    /** `ago` is such as "2 min ago". */
    readonly silent: (ago: string) => string
  }
}

/** Expected in those namespaces of the product that are configured. */
export const expectedTraffic = ({ namespaces }: Pick<ChannelRules, 'namespaces'>): readonly ExpectedTraffic[] =>
  PRODUCT_TRAFFIC.filter(({ namespace }) => namespaces.has(namespace))

/** The channels of the product that this relay serves by default. */
const PRODUCT_TRAFFIC: readonly ExpectedTraffic[] = [
  {
    id: 'floors',
    title: 'Floor positions',
    namespace: 'floor',
    channel: null,
    greenMs: MINUTE_MS,
    redMs: 5 * MINUTE_MS,
    redAfterStartMs: MINUTE_MS,
    texts: {
      active: 'Floor channels receive positions.',
      never: 'No positions have been published to any floor yet: check that the backend publishes to floor:<floorId>.',
      silent: (ago) => `The last positions of any floor were published ${ago}: check the publisher and its publish URL.`
    }
  },
  {
    id: 'global',
    title: 'global:all',
    namespace: 'global',
    channel: 'global:all',
    // It receives publications only when devices appear.
    greenMs: 15 * MINUTE_MS,
    redMs: HOUR_MS,
    redAfterStartMs: HOUR_MS,
    texts: {
      active: 'global:all receives publications.',
      never: 'Nothing has been published to global:all yet: publications are sent when devices appear.',
      silent: (ago) => `The last publication to global:all was ${ago}: check the ambient batches of the backend.`
    }
  }
]
