import { computed } from 'vue'
import { api } from '../services.js'
import type { DataResponse, Named, SiteContext } from '../types.js'
import { useLoaded } from './useLoad.js'

/** All floors with the names of their buildings, for filters, forms and lists. With `everyMs`, their counts are updated. */
export const useFloorOptions = (everyMs?: number) => {
  const site = useLoaded(api.context.read<DataResponse<SiteContext>>, everyMs)
  const buildings = computed(() => site.data.value?.buildings ?? [])
  const floors = computed((): readonly Named[] =>
    buildings.value.flatMap((building) =>
      building.floors.map(({ id, name }) => ({ id, name: `${building.name} – ${name}` }))
    )
  )
  return { site, buildings, floors }
}
