import type { AmbientEntry } from '../../../schemas/realtime.js'
import { integerBetween, pick, type Random } from '../random.js'

const KINDS = [
  ['phone', 'Pear Devices'],
  ['phone', 'Northern Mobile'],
  ['headset', 'Soundwell'],
  ['watch', 'Tickwise'],
  ['laptop', 'Slate Computers'],
  ['tracker', null]
] as const

const DEVICES = 40
const HEARD_AT_ONCE = 6

interface Device {
  readonly deviceId: string
  readonly deviceType: string
  readonly manufacturer: string | null
}

/** Devices that are nobody's business: heard now and then by some receiver, and told what they seem to be. */
export class AmbientDevices {
  readonly #random: Random
  readonly #devices: readonly Device[]

  constructor(random: Random) {
    this.#random = random
    this.#devices = Array.from({ length: DEVICES }, () => {
      const [deviceType, manufacturer] = pick(random, KINDS)
      return { deviceId: address(random), deviceType, manufacturer }
    })
  }

  /** A few of them. A device stays with its receiver, so that on most floors there is always one to be seen. */
  heard(receiverIds: readonly string[], nowMs: number): AmbientEntry[] {
    return Array.from({ length: receiverIds.length === 0 ? 0 : HEARD_AT_ONCE }, () => {
      const index = integerBetween(this.#random, 0, DEVICES - 1)
      return {
        ...(this.#devices[index] as Device), // there are that many
        receiverId: receiverIds[Math.floor((index * receiverIds.length) / DEVICES)] ?? '',
        rssi: integerBetween(this.#random, -88, -55),
        timestamp: nowMs
      }
    })
  }
}

const address = (random: Random): string =>
  Array.from({ length: 6 }, () => integerBetween(random, 0, 255).toString(16).toUpperCase().padStart(2, '0')).join(':')
