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

  /** A few of them, each at one of these receivers. */
  heard(receiverIds: readonly string[], nowMs: number): AmbientEntry[] {
    if (receiverIds.length === 0) return []
    return Array.from({ length: integerBetween(this.#random, 1, 4) }, () => ({
      ...pick(this.#random, this.#devices),
      receiverId: pick(this.#random, receiverIds),
      rssi: integerBetween(this.#random, -88, -55),
      timestamp: nowMs
    }))
  }
}

const address = (random: Random): string =>
  Array.from({ length: 6 }, () => integerBetween(random, 0, 255).toString(16).toUpperCase().padStart(2, '0')).join(':')
