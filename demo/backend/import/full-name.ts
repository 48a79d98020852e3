import type { Fields } from '../world.js'

/** As in the schema of a person: a longer name could be exported, but not be imported again. */
export const MAX_FULL_NAME = 200
export const FULL_NAME_TOO_LONG = `is too long: the whole name has at most ${MAX_FULL_NAME} characters`

/** The name of a person in a file. A stored name follows a changed first or last name. */
export const fullName = (values: Fields, stored: Fields | null): string => {
  const first = values.firstName === undefined ? stored?.firstName : values.firstName
  const last = values.lastName === undefined ? stored?.lastName : values.lastName
  const name = values.name === undefined ? stored?.name : values.name
  const full = [first, last].filter((part) => typeof part === 'string' && part !== '').join(' ')
  const hasNewParts = (first ?? null) !== (stored?.firstName ?? null) || (last ?? null) !== (stored?.lastName ?? null)
  const isOldName = name == null || name === '' || name === stored?.name
  return String((isOldName && hasNewParts && full !== '' ? full : name) ?? full)
}
