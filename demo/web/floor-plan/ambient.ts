import type { AmbientEntry } from '../../../schemas/realtime.js'
import type { Placed, Point } from './plan.js'

/** Metres from the receiver, for a signal in dBm. */
const distanceOf = (rssi: number): number => Math.min(Math.max(-rssi - 30, 10), 75) / 15

/**
 * Positions for devices whose location is not known: around the receiver, at a distance that depends on the signal
 * strength. The direction is derived from the device id, so that it stays the same.
 */
export const ambientMarks = (
  devices: Iterable<AmbientEntry>,
  receivers: readonly { readonly id: string; readonly position?: Point | null | undefined }[]
): readonly Placed[] => {
  const positions = new Map(receivers.map(({ id, position }) => [id, position]))
  return [...devices].flatMap(({ deviceId, receiverId, rssi }) => {
    const receiver = positions.get(String(receiverId))
    if (!receiver) return []
    const id = String(deviceId)
    const x = receiver.x + Math.cos(angleOf(id)) * distanceOf(rssi)
    const y = receiver.y + Math.sin(angleOf(id)) * distanceOf(rssi)
    return [{ id, position: { x, y } }]
  })
}

/** A hash of the name as an angle in radians. */
const angleOf = (name: string): number => {
  const degrees = [...name].reduce((sum, character) => (sum * 31 + (character.codePointAt(0) ?? 0)) % 360, 7)
  return (degrees * Math.PI) / 180
}
