import { computed, reactive, ref, watch } from 'vue'
import { useRoute, useRouter } from 'vue-router'
import { isOrder, nextOrder, type Order } from '../../../src/ui/order.js'

/**
 * The search, filters, order and page of a list. They are in the URL, so that a reload or a shared link shows the same rows.
 * Other parameters of the URL stay.
 */
export const useListQuery = (filterNames: readonly string[], limit: number) => {
  const route = useRoute()
  const router = useRouter()
  const textOf = (name: string): string => {
    const value = route.query[name]
    return typeof value === 'string' ? value : ''
  }
  const search = ref(textOf('search'))
  const filters = reactive(Object.fromEntries(filterNames.map((name) => [name, textOf(name)])))
  const sort = ref(textOf('sort'))
  const order = ref<Order>(isOrder(route.query.order) ? route.query.order : 'asc')
  const offset = ref(Math.max(Math.trunc(Number(textOf('page'))) - 1 || 0, 0) * limit)

  watch([search, filters, sort, order], () => {
    offset.value = 0
  })
  /** The parameters with a value, without those of the page. */
  const selection = computed((): Readonly<Record<string, string>> => {
    const sorted = sort.value === '' ? {} : { sort: sort.value, order: order.value }
    const all = Object.entries({ search: search.value.trim(), ...filters, ...sorted })
    return Object.fromEntries(all.filter(([, value]) => value !== ''))
  })
  watch([selection, offset], () => {
    const own = new Set(['search', 'sort', 'order', 'page', ...filterNames])
    const others = Object.entries(route.query).filter(([name]) => !own.has(name))
    const page = offset.value === 0 ? {} : { page: String(offset.value / limit + 1) }
    void router.replace({ query: { ...Object.fromEntries(others), ...selection.value, ...page }, hash: route.hash })
  })

  return {
    search,
    filters,
    sort,
    order,
    offset,
    selection,
    sortBy: (by: string, firstOrder: Order): void => {
      order.value = nextOrder(order.value, sort.value === by, firstOrder)
      sort.value = by
    }
  }
}
