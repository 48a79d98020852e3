import type { StatePage, StateRange } from '../core/engine.js'

/** A longer read would block the process that has the map. */
export const MAX_ENTRIES_PER_READ = 1000

/**
 * Reads all entries of a range without a limit in several steps. Entries may then be newer than the position, which is that of the
 * first step; the stream brings them again.
 */
export const readInSteps = async (
  range: StateRange,
  readPage: (range: StateRange) => Promise<StatePage>
): Promise<StatePage> => {
  if (range.limit >= 0) return readPage(range)
  const first = await readPage({ ...range, limit: MAX_ENTRIES_PER_READ })
  const entries = [...first.entries]
  for (let { next } = first; next !== ''; ) {
    const page = await readPage({ after: next, limit: MAX_ENTRIES_PER_READ })
    for (const entry of page.entries) entries.push(entry)
    next = page.next
  }
  return { ...first, entries, next: '' }
}
