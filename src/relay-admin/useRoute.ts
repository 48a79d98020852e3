import { ref, shallowRef } from 'vue'
import { hashOf, parseRoute, type View } from './route.js'

const route = shallowRef(parseRoute(location.hash))
/** Counts navigations; every navigation renders its view again. */
const visits = ref(0)
addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash)
  visits.value += 1
})

export const useRoute = () => ({
  route,
  visits,
  /** Changes the query of the current view without a history entry and without rendering it again. */
  replaceQuery: (view: View, query: Readonly<Record<string, string | number>>): void => {
    history.replaceState(history.state, '', hashOf(view, query))
  }
})
