import { ref, watch } from 'vue'
import { type LocationQuery, useRoute, useRouter } from 'vue-router'

const textOf = (query: LocationQuery, name: string): string | null => {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/**
 * The selected transmitter, the zone and the visible part of the floor. They are in the URL, so that a reload or a shared link
 * shows the same. Other parameters of the URL stay.
 */
export const usePlanQuery = () => {
  const route = useRoute()
  const router = useRouter()
  const selected = ref<string | null>(null)
  const view = ref<string | null>(null)
  const zone = ref<string | null>(null)
  const own = { selected, view, zone }
  watch(
    () => route.query,
    (query) => {
      for (const [name, value] of Object.entries(own)) value.value = textOf(query, name)
    },
    { immediate: true }
  )
  watch([selected, view, zone], () => {
    const values = Object.entries(own).map(([name, { value }]) => [name, value] as const)
    if (values.every(([name, value]) => value === textOf(route.query, name))) return
    const others = Object.entries(route.query).filter(([name]) => !Object.hasOwn(own, name))
    const query = Object.fromEntries([...others, ...values.filter(([, value]) => value !== null)])
    void router.replace({ query, hash: route.hash })
  })
  return own
}
