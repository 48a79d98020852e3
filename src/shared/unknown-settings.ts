import type { Environment, Settings } from './env.js'

/** A variable that is not a setting but resembles one. */
export interface UnknownSetting {
  readonly variable: string
  readonly resembles: string
}

/** Variables that look like misspelled settings. Other unknown variables are ignored. */
export const unknownSettings = (settings: Settings, environment: Environment): readonly UnknownSetting[] => {
  const known = new Set(Object.keys(settings).flatMap((name) => [name, `${name}_FILE`]))
  return Object.keys(environment).flatMap((name) => {
    if (known.has(name) || !environment[name]) return []
    const resembles = nearest(name.toUpperCase().replaceAll(/[-.]/g, '_'), known)
    return resembles === null ? [] : [{ variable: name, resembles }]
  })
}

/** For startup errors. */
export const unknownSettingLine = ({ variable, resembles }: UnknownSetting): string =>
  `${variable} is not a setting. Did you mean ${resembles}?`

const MAX_EDITS = 3
/** One edit per four characters, so that short names do not match unrelated ones. */
const CHARACTERS_PER_EDIT = 4

const nearest = (name: string, known: Iterable<string>): string | null => {
  let best: string | null = null
  let fewest = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const longer = Math.max(name.length, candidate.length)
    const allowed = Math.min(MAX_EDITS, Math.floor(longer / CHARACTERS_PER_EDIT))
    if (Math.abs(name.length - candidate.length) > allowed) continue
    const edits = editDistance(name, candidate, allowed)
    if (edits > allowed || edits >= fewest) continue
    best = candidate
    fewest = edits
  }
  return best
}

/**
 * Insertions, deletions, replacements, and swaps of adjacent characters (optimal string alignment). Stops when the distance
 * exceeds the limit: a start compares each variable of the environment with each setting.
 */
const editDistance = (left: string, right: string, limit: number): number => {
  let beforeLast: readonly number[] = []
  let last: readonly number[] = Array.from({ length: right.length + 1 }, (_, index) => index)
  let fewestOfLast = 0
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    let fewest = row
    for (let column = 1; column <= right.length; column++) {
      const isSame = left[row - 1] === right[column - 1]
      const isSwap = row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
      const edits = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwap ? at(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY
      )
      current.push(edits)
      fewest = Math.min(fewest, edits)
    }
    // A swap continues from the row before the last.
    if (fewest > limit && fewestOfLast > limit) return Number.POSITIVE_INFINITY
    beforeLast = last
    last = current
    fewestOfLast = fewest
  }
  return at(last, right.length)
}

const at = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY
