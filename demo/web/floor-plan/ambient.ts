import type { AmbientEntry } from '../../../schemas/realtime.js'
import type { Placed, Point } from './plan.js'

const WEAKEST_DBM = -100
const STRONGEST_DBM = -40
const FARTHEST_METRES = 4

/**
 * A place for a device that was only heard: somewhere around the receiver, the nearer the stronger. Which side of it is
 * unknown, so its name decides, and it stays there.
 */
export const ambientMarks = (
  devices: Iterable<AmbientEntry>,
  receivers: readonly { readonly id: string; readonly position?: Point | null | undefined }[]
): readonly Placed[] => {
  const places = new Map(receivers.map(({ id, position }) => [id, position]))
  return [...devices].flatMap(({ deviceId, receiverId, rssi }) => {
    const receiver = places.get(String(receiverId))
    if (!receiver) return []
    const strength = Math.min(Math.max((rssi - WEAKEST_DBM) / (STRONGEST_DBM - WEAKEST_DBM), 0), 1)
    const distance = 0.8 + (1 - strength) * FARTHEST_METRES
    const angle = (hash(String(deviceId)) % 360) * (Math.PI / 180)
    const position = { x: receiver.x + Math.cos(angle) * distance, y: receiver.y + Math.sin(angle) * distance }
    return [{ id: String(deviceId), position }]
  })
}

const hash = (text: string): number => {
  let value = 7
  for (const character of text) value = (value * 31 + (character.codePointAt(0) ?? 0)) >>> 0
  return value
}
