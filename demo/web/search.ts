/** Removes accents and case, so that "jose" matches "José". */
const folded = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{Diacritic}/gu, '')
    .toLowerCase()

/** Whether the text contains every word of the query. An empty query matches everything. */
export const matches = (text: string, query: string): boolean => {
  const haystack = folded(text)
  return folded(query)
    .split(/\s+/)
    .every((word) => haystack.includes(word))
}
