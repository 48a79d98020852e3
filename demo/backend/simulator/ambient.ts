import type { AmbientEntry } from '../../../schemas/realtime.js'
import { integerBetween, pick, type Random } from '../random.js'
import { DEVICE_KINDS } from '../site/names.js'

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
