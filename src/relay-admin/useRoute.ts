import { ref, shallowRef } from 'vue'
import { hashOf, parseRoute, type View } from './route.js'

const route = shallowRef(parseRoute(location.hash))
/** Counts navigations: each one draws its view anew. */
const visits = ref(0)
addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash)
  visits.value += 1
})

export const useRoute = () => ({
  route,
  visits,
  /** The same view with another search or page: no step in the browser's history, nothing is drawn anew. */
  remember: (view: View, query: Readonly<Record<string, string | number>>): void => {
    history.replaceState(history.state, '', hashOf(view, query))
  }
})
