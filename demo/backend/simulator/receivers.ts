import type { AmbientEntry } from '../../../schemas/realtime.js'
import { integerBetween, pick, type Random } from '../random.js'
import { DEVICE_KINDS } from '../site/names.js'
import type { Statements } from '../world.js'

const DEVICES = 40
const HEARD_AT_ONCE = 6

/**
 * Ambient devices: a few are detected and classified now and then. A device stays with its receiver, so that most floors
 * always show one.
 */
export const ambientDevices = (random: Random) => {
  const devices = Array.from({ length: DEVICES }, (_, index) => {
    const [deviceType = '', manufacturer = null] = pick(random, DEVICE_KINDS).split(':')
    return { index, deviceId: address(random), deviceType, manufacturer }
  })
  return (receiverIds: readonly string[], timestamp: number): AmbientEntry[] =>
    Array.from({ length: receiverIds.length === 0 ? 0 : HEARD_AT_ONCE }, () => {
      const { index, ...device } = pick(random, devices)
      const receiverId = receiverIds[Math.floor((index * receiverIds.length) / DEVICES)] ?? ''
      return { ...device, receiverId, rssi: integerBetween(random, -88, -55), timestamp }
    })
}

const address = (random: Random): string =>
  Array.from({ length: 6 }, () => integerBetween(random, 0, 255).toString(16).toUpperCase().padStart(2, '0')).join(':')

const CHANGES = 0.15
const FAILING = { least: 3, most: 7 } as const

/**
 * Stores that receivers have reported. Now and then, one of them fails and reports no longer, or another one recovers. The
 * status follows from the time of the last report and the settings.
 */
export class ReceiverReports {
  readonly #random: Random
  /** Null until the first report: receivers that are offline at the start have failed. */
  #failing: ReadonlySet<string> | null = null

  constructor(random: Random) {
    this.#random = random
  }

  async store(database: Statements, at: Date): Promise<void> {
    const receivers = await database.rows<{ id: string; status: string | null }>(
      'SELECT id, status FROM receivers WHERE is_active IS NOT FALSE ORDER BY id'
    )
    const ids = receivers.map(({ id }) => id)
    const offline = receivers.filter(({ status }) => status === 'offline').map(({ id }) => id)
    const before = this.#failing ?? new Set(offline)
    const failing = ids.filter((id) => before.has(id))
    this.#failing = new Set(this.#random() < CHANGES ? this.#changed(ids, failing) : failing)
    await database.rows(
      'UPDATE receivers SET last_seen_at = $1 WHERE is_active IS NOT FALSE AND id <> ALL($2::text[])',
      [at, [...this.#failing]]
    )
  }

  #changed(ids: readonly string[], failing: readonly string[]): readonly string[] {
    const recovers = failing.length > FAILING.least && (failing.length >= FAILING.most || this.#random() < 0.5)
    const from = recovers ? failing : ids.filter((id) => !failing.includes(id))
    if (from.length === 0) return failing
    const chosen = pick(this.#random, from)
    return recovers ? failing.filter((id) => id !== chosen) : [...failing, chosen]
  }
}
