import type { Entry, KeyedList } from './keyed-list.js'

/** Whether an entry replaces an earlier one of the same key: unless it is older. Without two times, the later one wins. */
export const replaces = (later: Pick<Entry, 'time'>, earlier: Pick<Entry, 'time'>): boolean =>
  !(later.time < earlier.time)

/**
 * Publications of one channel that are being merged into one. The result has the newest entry of each key and, apart from
 * the list, the content of the newest publication. Entries are never parsed, so their spelling is preserved and the cost of
 * a batch does not grow with what was merged before.
 */
export class Conflation {
  /** The newest entry by key, least recently updated first. */
  readonly #entries = new Map<string, Entry>()
  #newest: KeyedList | null = null
  /** Bytes of all entries without the commas between them. */
  #entryBytes = 0

  add(list: KeyedList): void {
    this.#newest = list
    for (const entry of list.entries) {
      const earlier = this.#entries.get(entry.key)
      if (earlier !== undefined) {
        if (!replaces(entry, earlier)) continue
        this.#entryBytes -= earlier.bytes
        this.#entries.delete(entry.key)
      }
      this.#entries.set(entry.key, entry)
      this.#entryBytes += entry.bytes
    }
  }

  /** Size of the text that `toJson` would return. */
  get bytes(): number {
    return (this.#newest?.outerBytes ?? 0) + this.#entryBytes + Math.max(0, this.#entries.size - 1)
  }

  toJson(): string {
    return this.#newest === null ? '' : listText(this.#newest, this.#entries.values())
  }
}

/** The text of a publication with other entries in its list. */
export const listText = ({ prefix, suffix }: KeyedList, entries: Iterable<Pick<Entry, 'text'>>): string => {
  const texts: string[] = []
  for (const { text } of entries) texts.push(text)
  return `${prefix}${texts.join(',')}${suffix}`
}
