import { computed, type Ref } from 'vue'
import { useRoute, useRouter } from 'vue-router'
import { linkedPlaceIn } from '../floor-plan/linked-place.js'
import type { FloorContext } from '../types.js'

/** The zone or receiver that the URL names, for example after a click on an alert. */
export const useLinkedPlace = (plan: Ref<FloorContext | null>) => {
  const route = useRoute()
  const router = useRouter()
  return {
    place: computed(() => plan.value && linkedPlaceIn(plan.value, route.query)),
    clear: (): void => {
      const { zone: _zone, receiver: _receiver, ...others } = route.query
      void router.replace({ query: others, hash: route.hash })
    }
  }
}
