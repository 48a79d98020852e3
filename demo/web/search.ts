/** Letters without accents and case, so that "jose" finds José. */
const folded = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{Diacritic}/gu, '')
    .toLowerCase()

/** Every word of the query is somewhere in the text. An empty query finds everything. */
export const matches = (text: string, query: string): boolean => {
  const haystack = folded(text)
  return folded(query)
    .split(/\s+/)
    .every((word) => haystack.includes(word))
}
