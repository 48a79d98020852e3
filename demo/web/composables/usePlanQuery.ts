import { ref, watch } from 'vue'
import { type LocationQuery, useRoute, useRouter } from 'vue-router'

const textOf = (query: LocationQuery, name: string): string | null => {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/**
 * The selected transmitter, the visible part of the floor, and the zone or receiver of a link. They are in the URL, so that a
 * reload or a shared link shows the same.
 */
export const usePlanQuery = () => {
  const route = useRoute()
  const router = useRouter()
  const own = {
    selected: ref<string | null>(null),
    view: ref<string | null>(null),
    zone: ref<string | null>(null),
    receiver: ref<string | null>(null)
  }
  watch(
    () => route.query,
    (query) => {
      for (const [name, value] of Object.entries(own)) value.value = textOf(query, name)
    },
    { immediate: true }
  )
  watch(Object.values(own), () => {
    const values = Object.entries(own).map(([name, { value }]) => [name, value] as const)
    if (values.every(([name, value]) => value === textOf(route.query, name))) return
    const query = Object.fromEntries(values.filter(([, value]) => value !== null))
    void router.replace({ query, hash: route.hash })
  })
  return own
}
