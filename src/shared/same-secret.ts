import { timingSafeEqual } from 'node:crypto'

/**
 * Compares in constant time. The time may reveal whether the lengths are equal: all secrets compared here have a known
 * length, and hiding it would take two hashes, ten times the cost.
 */
export const sameSecret = (left: string, right: string): boolean => {
  const leftBytes = Buffer.from(left)
  const rightBytes = Buffer.from(right)
  return leftBytes.length === rightBytes.length && timingSafeEqual(leftBytes, rightBytes)
}
