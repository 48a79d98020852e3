import { MAX_LIST_ROWS } from '../relay/admin/contract.js'
import { isOrder, type Order } from '../ui/order.js'

/** The relay rejects longer searches. */
export const MAX_SEARCH_LENGTH = 256
/** Rows of a page. */
export const PAGE_SIZE = 50

/** Search, order and page of a list from the query of a URL. Values that the relay would reject are replaced by the initial ones. */
export const listStateOf = <Sort extends string>(
  { search = '', sort, order, page }: Readonly<Record<string, string>>,
  sorts: readonly Sort[],
  initial: { readonly sort: Sort; readonly order: Order }
) => {
  const known = sorts.find((each) => each === sort)
  const index = Number(page)
  return {
    search: search.slice(0, MAX_SEARCH_LENGTH),
    ...(known === undefined ? initial : { sort: known, order: isOrder(order) ? order : initial.order }),
    page: Number.isInteger(index) && index >= 0 && index < MAX_LIST_ROWS / PAGE_SIZE ? index : 0
  }
}
