import { computed, ref, watch } from 'vue'
import { MAX_LIST_ROWS, type Page } from '../relay/admin/contract.js'
import { nextOrder, type Order } from '../ui/order.js'
import { listStateOf, PAGE_SIZE } from './list-query.js'
import type { View } from './route.js'
import { useApi } from './useApi.js'
import { useRoute } from './useRoute.js'

const DEBOUNCE_MS = 200

export interface ListOptions<Data, Row, Sort extends string> {
  /** The view, which is also the path of the request. */
  readonly view: View
  /** The columns that the relay sorts by. */
  readonly sorts: readonly Sort[]
  readonly initial: { readonly sort: Sort; readonly order: Order }
  /** Further fields of the query, which do not change. */
  readonly query?: Readonly<Record<string, string>>
  readonly pageOf: (data: Data) => Page<Row>
}

/** A list that the relay searches, sorts and pages. Its state is in the URL, so that it survives a reload. */
export const useList = <Data, Row, Sort extends string>(options: ListOptions<Data, Row, Sort>) => {
  const { view, sorts, initial, query: fixed = {}, pageOf } = options
  const { route, replaceQuery } = useRoute()
  const saved = listStateOf(route.value.query, sorts, initial)
  const search = ref(saved.search)
  const sort = ref<string>(saved.sort)
  const order = ref<Order>(saved.order)
  const offset = ref(saved.page * PAGE_SIZE)

  const query = computed(() => ({
    ...fixed,
    search: search.value.trim(),
    sort: sort.value,
    order: order.value,
    page: Math.floor(offset.value / PAGE_SIZE)
  }))
  const { data, dataTime, error, rejection, isLoading, load } = useApi<Data>(view, () => ({
    ...query.value,
    size: PAGE_SIZE
  }))
  const page = computed(() => (data.value === null ? null : pageOf(data.value)))

  watch([search, sort, order], () => {
    offset.value = 0
  })
  // The list may have become shorter than the offset of this page.
  watch(page, (loaded) => {
    if (loaded !== null && offset.value > 0 && offset.value >= loaded.total) offset.value = 0
  })
  watch(query, (_new, _old, onCleanup) => {
    replaceQuery(view, query.value)
    const timer = setTimeout(() => void load(), DEBOUNCE_MS)
    onCleanup(() => clearTimeout(timer))
  })

  return {
    data,
    dataTime,
    rows: computed(() => page.value?.rows ?? []),
    /** Null before the first response. */
    total: computed(() => page.value?.total ?? null),
    /** The number of rows on the pages. */
    listed: computed(() => (page.value === null ? null : Math.min(page.value.total, MAX_LIST_ROWS))),
    size: PAGE_SIZE,
    search,
    offset,
    sort,
    order,
    sortBy: (by: Sort, firstOrder: Order): void => {
      order.value = nextOrder(order.value, sort.value === by, firstOrder)
      sort.value = by
    },
    error,
    rejection,
    isLoading,
    load
  }
}
