import { timingSafeEqual } from 'node:crypto'

/**
 * Equal or not, in a time that does not tell where two secrets differ. It may tell whether they are equally long: every
 * secret here has a length that is known anyway, and hiding it would take two hashes, ten times the comparison.
 */
export const sameSecret = (left: string, right: string): boolean => {
  const leftBytes = Buffer.from(left)
  const rightBytes = Buffer.from(right)
  return leftBytes.length === rightBytes.length && timingSafeEqual(leftBytes, rightBytes)
}
