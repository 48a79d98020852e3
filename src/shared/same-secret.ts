import { createHash, timingSafeEqual } from 'node:crypto'

/** Equal or not, in a time that tells nothing about where two secrets differ, nor how long either is. */
export const sameSecret = (left: string, right: string): boolean => timingSafeEqual(digest(left), digest(right))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
