import { MUTATING_METHODS } from '../access.js'

// RFC 9110: what is above says nothing that anybody could understand.
export const MAX_STATUS = 599

/** Whole without a body, though they may speak of its length. */
export const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

/** For an answer without a body: whether that is all it says. A 201 still says that something was created. */
export const isNoContent = (status: number, method: string): boolean =>
  status === 204 || status === 205 || (status === 200 && MUTATING_METHODS.has(method))

/** What speaks of a body. */
export const CONTENT_HEADERS: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding'])
