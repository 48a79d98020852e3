import { isOrder, type Order } from '../ui/order.js'

/** The relay rejects longer searches. */
export const MAX_SEARCH_LENGTH = 256
/** The relay rejects later pages. */
const MAX_PAGE = 1_000_000

/** Search, order and page of a list. */
export interface ListState<Sort extends string> {
  readonly search: string
  readonly sort: Sort
  readonly order: Order
  readonly page: number
}

/** The state that the query of a URL describes. Values that the relay would reject are replaced by the initial ones. */
export const listStateOf = <Sort extends string>(
  { search = '', sort, order, page }: Readonly<Record<string, string>>,
  sorts: readonly Sort[],
  initial: { readonly sort: Sort; readonly order: Order }
): ListState<Sort> => {
  const known = sorts.find((each) => each === sort)
  const index = Number(page)
  return {
    search: search.slice(0, MAX_SEARCH_LENGTH),
    ...(known === undefined ? initial : { sort: known, order: isOrder(order) ? order : initial.order }),
    page: Number.isInteger(index) && index >= 0 && index <= MAX_PAGE ? index : 0
  }
}
