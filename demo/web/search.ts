import type { Carrier } from './types.js'

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

/** The text by which a search on the plan finds a carrier: the name, and of guests the category and the company. */
export const searchText = ({ name, entityType, company }: Pick<Carrier, 'name' | 'entityType' | 'company'>): string =>
  ['visitor', 'contractor'].includes(entityType) ? `${name} ${entityType} ${company ?? ''}` : name
