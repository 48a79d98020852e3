import { isOrder, type Order } from '../../src/ui/order.js'

/** The search, filters, order and offset of a list. */
export interface ListState {
  readonly search: string
  readonly filters: Readonly<Record<string, string>>
  /** Empty for the order of the backend. */
  readonly sort: string
  readonly order: Order
  readonly offset: number
}

export interface ListShape {
  readonly filterNames: readonly string[]
  readonly sortNames: readonly string[]
  /** Rows per page. */
  readonly limit: number
}

/** The state that the query of a URL describes. Values that the list does not have, such as an unknown order, are ignored. */
export const listStateOf = (
  query: Readonly<Record<string, unknown>>,
  { filterNames, sortNames, limit }: ListShape
): ListState => {
  const textOf = (name: string): string => {
    const value = query[name]
    return typeof value === 'string' ? value : ''
  }
  const page = Number(textOf('page'))
  const offset = Number.isInteger(page) ? (page - 1) * limit : 0
  return {
    search: textOf('search'),
    filters: Object.fromEntries(filterNames.map((name) => [name, textOf(name)])),
    sort: sortNames.includes(textOf('sort')) ? textOf('sort') : '',
    order: isOrder(query.order) ? query.order : 'asc',
    offset: Number.isSafeInteger(offset) && offset > 0 ? offset : 0
  }
}

/** The parameters of a state that have a value, without the page. */
export const selectionOf = ({
  search,
  filters,
  sort,
  order
}: Omit<ListState, 'offset'>): Readonly<Record<string, string>> => {
  const all = Object.entries({ search: search.trim(), ...filters, ...(sort !== '' && { sort, order }) })
  return Object.fromEntries(all.filter(([, value]) => value !== ''))
}

/** The offset of the last page. */
export const lastOffset = (total: number, limit: number): number => Math.max(Math.ceil(total / limit) - 1, 0) * limit
