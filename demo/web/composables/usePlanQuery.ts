import { ref, watch } from 'vue'
import { type LocationQuery, useRoute, useRouter } from 'vue-router'

const textOf = (query: LocationQuery, name: string): string | null => {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/**
 * The selected transmitter and the visible part of the floor. They are in the URL, so that a reload or a shared link shows
 * the same. Other parameters of the URL stay.
 */
export const usePlanQuery = () => {
  const route = useRoute()
  const router = useRouter()
  const selected = ref<string | null>(null)
  const view = ref<string | null>(null)
  watch(
    () => route.query,
    (query) => {
      selected.value = textOf(query, 'selected')
      view.value = textOf(query, 'view')
    },
    { immediate: true }
  )
  watch([selected, view], () => {
    if (selected.value === textOf(route.query, 'selected') && view.value === textOf(route.query, 'view')) return
    const { selected: _selected, view: _view, ...others } = route.query
    const own = { ...(selected.value && { selected: selected.value }), ...(view.value && { view: view.value }) }
    void router.replace({ query: { ...others, ...own }, hash: route.hash })
  })
  return { selected, view }
}
