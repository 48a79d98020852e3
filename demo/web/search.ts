/** Letters without accents and case, so that "jose" finds José. */
export const folded = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{Diacritic}/gu, '')
    .toLowerCase()

/** Every word of the query is somewhere in the text. An empty query finds everything. */
export const matches = (text: string, query: string): boolean => {
  const haystack = folded(text)
  return words(query).every((word) => haystack.includes(word))
}

/** What matches, with those first that have a word which begins like the query. The order stays otherwise. */
export const found = <Item>(items: readonly Item[], query: string, textOf: (item: Item) => string): Item[] => {
  const hits = items.filter((item) => matches(textOf(item), query))
  const [first] = words(query)
  if (first === undefined) return hits
  const begins = (item: Item): boolean => words(textOf(item)).some((word) => word.startsWith(first))
  return [...hits.filter(begins), ...hits.filter((item) => !begins(item))]
}

const words = (text: string): string[] => folded(text).split(/\s+/).filter(Boolean)
