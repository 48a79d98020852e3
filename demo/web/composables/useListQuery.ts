import { computed, ref, shallowRef, watch } from 'vue'
import { type LocationQuery, useRoute, useRouter } from 'vue-router'
import { isOrder, nextOrder, type Order } from '../../../src/ui/order.js'

interface ListShape {
  readonly filterNames: readonly string[]
  readonly sortNames: readonly string[]
  /** Rows per page. */
  readonly limit: number
}

/** The search, filters, order and page of a list. They are in the URL, so that a reload or a shared link shows the same rows. */
export const useListQuery = ({ filterNames, sortNames, limit }: ListShape) => {
  const route = useRoute()
  const router = useRouter()
  const { path } = route
  const query = shallowRef<LocationQuery>(route.query)
  // The query of the page that the user goes to next is not that of this list.
  watch(
    () => route.query,
    (next) => {
      if (route.path === path) query.value = next
    }
  )
  const textOf = (name: string): string => {
    const value = query.value[name]
    return typeof value === 'string' ? value : ''
  }
  /** Another selection starts at its first page. */
  const change = (changed: Readonly<Record<string, string>>): void => {
    const all = Object.entries({ ...query.value, page: '', ...changed }).filter(([, value]) => value !== '')
    query.value = Object.fromEntries(all)
    void router.replace({ query: query.value, hash: route.hash })
  }

  const search = ref(textOf('search'))
  watch(search, (text) => text.trim() === textOf('search') || change({ search: text.trim() }))
  watch(query, () => {
    if (textOf('search') !== search.value.trim()) search.value = textOf('search')
  })
  const sort = computed(() => (sortNames.includes(textOf('sort')) ? textOf('sort') : ''))
  const order = computed((): Order => (isOrder(query.value.order) ? query.value.order : 'asc'))
  /** The parameters that have a value, without the page. */
  const selection = computed(() => {
    const filters = ['search', ...filterNames].map((name) => [name, textOf(name)] as const)
    const ordered = sort.value ? [['sort', sort.value] as const, ['order', order.value] as const] : []
    return Object.fromEntries([...filters, ...ordered].filter(([, value]) => value !== ''))
  })
  const offset = computed({
    get: () => {
      const page = Number(textOf('page'))
      return Number.isSafeInteger(page) && page > 1 ? (page - 1) * limit : 0
    },
    set: (rows) => change({ page: rows === 0 ? '' : String(rows / limit + 1) })
  })
  return {
    search,
    sort,
    order,
    offset,
    selection,
    filterOf: textOf,
    filter: (name: string, value: string): void => change({ [name]: value }),
    /** Shows all rows, in the same order. */
    clear: (): void => change(Object.fromEntries(['search', ...filterNames].map((name) => [name, '']))),
    sortBy: (by: string, firstOrder: Order): void =>
      change({ sort: by, order: nextOrder(order.value, sort.value === by, firstOrder) })
  }
}
