import { computed, ref, watch } from 'vue'
import type { Page } from '../relay/admin/contract.js'
import type { View } from './route.js'
import { useAnswer } from './useAnswer.js'
import { useRoute } from './useRoute.js'

const SIZE = 50
const ASK_AFTER_MS = 200

export type Order = 'asc' | 'desc'

/** A long list that the relay searches, sorts and cuts into pages. Its state is in the address: a reload changes nothing. */
export const useList = <Row, Sort extends string>(
  view: View & string,
  first: { readonly sort: Sort; readonly order: Order }
) => {
  const { route, remember } = useRoute()
  const { query: before } = route.value
  const search = ref(before.search ?? '')
  const sort = ref<string>(before.sort ?? first.sort)
  const order = ref<Order>(before.order === 'asc' || before.order === 'desc' ? before.order : first.order)
  const offset = ref(Math.max(Number(before.page) || 0, 0) * SIZE)

  const query = computed(() => ({
    search: search.value.trim(),
    sort: sort.value,
    order: order.value,
    page: Math.floor(offset.value / SIZE)
  }))
  const { data, error, isLoading, load } = useAnswer<Page<Row>>(view, () => ({ ...query.value, size: SIZE }))

  watch([search, sort, order], () => {
    offset.value = 0
  })
  // The list may have become shorter than the way to this page.
  watch(data, (page) => {
    if (page !== null && offset.value > 0 && offset.value >= page.total) offset.value = 0
  })
  watch(query, (_new, _old, onCleanup) => {
    remember(view, query.value)
    const timer = setTimeout(() => void load(), ASK_AFTER_MS)
    onCleanup(() => clearTimeout(timer))
  })

  return {
    rows: computed(() => data.value?.rows ?? []),
    /** Null while nothing is known. */
    total: computed(() => data.value?.total ?? null),
    size: SIZE,
    search,
    offset,
    sort,
    order,
    /** The column that is sorted already turns round. */
    sortBy: (by: Sort, firstOrder: Order): void => {
      order.value = sort.value === by ? (order.value === 'asc' ? 'desc' : 'asc') : firstOrder
      sort.value = by
    },
    error,
    isLoading,
    load
  }
}
