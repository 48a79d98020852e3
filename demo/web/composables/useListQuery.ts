import { computed, reactive, ref, shallowRef, watch } from 'vue'
import { useRoute, useRouter } from 'vue-router'
import { nextOrder, type Order } from '../../../src/ui/order.js'
import { type ListShape, type ListState, listStateOf, selectionOf } from '../list-query.js'

/**
 * The search, filters, order and page of a list. They are in the URL, so that a reload or a shared link shows the same rows.
 * Other parameters of the URL stay.
 */
export const useListQuery = (shape: ListShape) => {
  const route = useRoute()
  const router = useRouter()
  const first = listStateOf(route.query, shape)
  const search = ref(first.search)
  const filters = reactive({ ...first.filters })
  const sort = ref(first.sort)
  const order = ref<Order>(first.order)

  const selection = computed(() => selectionOf({ search: search.value, filters, sort: sort.value, order: order.value }))
  const selectionText = computed(() => JSON.stringify(selection.value))
  /** A page of the rows that a selection finds; another selection starts at its first page. */
  const page = shallowRef({ of: selectionText.value, offset: first.offset })
  const offset = computed({
    get: () => (page.value.of === selectionText.value ? page.value.offset : 0),
    set: (rows) => {
      page.value = { of: selectionText.value, offset: rows }
    }
  })
  const show = (state: ListState): void => {
    search.value = state.search
    Object.assign(filters, state.filters)
    sort.value = state.sort
    order.value = state.order
    offset.value = state.offset
  }

  watch([selectionText, offset], () => {
    const own = new Set(['search', 'sort', 'order', 'page', ...shape.filterNames])
    const others = Object.entries(route.query).filter(([name]) => !own.has(name))
    const paged = offset.value === 0 ? {} : { page: String(offset.value / shape.limit + 1) }
    void router.replace({ query: { ...Object.fromEntries(others), ...selection.value, ...paged }, hash: route.hash })
  })
  // A link to the same page, such as its menu entry, may have other parameters.
  const { path } = route
  watch(
    () => route.query,
    (query) => {
      const linked = listStateOf(query, shape)
      const isShown = JSON.stringify(selectionOf(linked)) === selectionText.value && linked.offset === offset.value
      if (route.path === path && !isShown) show(linked)
    }
  )

  return {
    search,
    filters,
    sort,
    order,
    offset,
    selection,
    /** Shows all rows, in the same order. */
    clear: (): void => show({ ...listStateOf({}, shape), sort: sort.value, order: order.value }),
    sortBy: (by: string, firstOrder: Order): void => {
      order.value = nextOrder(order.value, sort.value === by, firstOrder)
      sort.value = by
    }
  }
}
