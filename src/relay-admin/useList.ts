import { computed, ref, watch } from 'vue'
import type { Page } from '../relay/admin/contract.js'
import { isOrder, nextOrder, type Order } from '../ui/order.js'
import type { View } from './route.js'
import { useApi } from './useApi.js'
import { useRoute } from './useRoute.js'

const SIZE = 50
const DEBOUNCE_MS = 200

/** A list that the relay searches, sorts and pages. Its state is in the URL, so that it survives a reload. */
export const useList = <Row, Sort extends string>(
  view: View & string,
  initial: { readonly sort: Sort; readonly order: Order }
) => {
  const { route, replaceQuery } = useRoute()
  const { query: saved } = route.value
  const search = ref(saved.search ?? '')
  const sort = ref<string>(saved.sort ?? initial.sort)
  const order = ref<Order>(isOrder(saved.order) ? saved.order : initial.order)
  const offset = ref(Math.max(Number(saved.page) || 0, 0) * SIZE)

  const query = computed(() => ({
    search: search.value.trim(),
    sort: sort.value,
    order: order.value,
    page: Math.floor(offset.value / SIZE)
  }))
  const { data, error, isLoading, load } = useApi<Page<Row>>(view, () => ({ ...query.value, size: SIZE }))

  watch([search, sort, order], () => {
    offset.value = 0
  })
  // The list may have become shorter than the offset of this page.
  watch(data, (page) => {
    if (page !== null && offset.value > 0 && offset.value >= page.total) offset.value = 0
  })
  watch(query, (_new, _old, onCleanup) => {
    replaceQuery(view, query.value)
    const timer = setTimeout(() => void load(), DEBOUNCE_MS)
    onCleanup(() => clearTimeout(timer))
  })

  return {
    rows: computed(() => data.value?.rows ?? []),
    /** Null before the first response. */
    total: computed(() => data.value?.total ?? null),
    size: SIZE,
    search,
    offset,
    sort,
    order,
    sortBy: (by: Sort, firstOrder: Order): void => {
      order.value = nextOrder(order.value, sort.value === by, firstOrder)
      sort.value = by
    },
    error,
    isLoading,
    load
  }
}
