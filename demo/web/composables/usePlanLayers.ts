import type { View } from 'gatehouse-client'
import { computed, type Ref } from 'vue'
import type { AmbientEntry } from '../../../schemas/realtime.js'
import { ambientMarks } from '../floor-plan/ambient.js'
import {
  ambientLayer,
  imageLayer,
  receiversLayer,
  wallsLayer,
  zoneLabelsLayer,
  zonesLayer
} from '../floor-plan/ground.js'
import type { Layer, LayerChoice } from '../floor-plan/layer.js'
import { linkedPlaceLayer } from '../floor-plan/linked-place.js'
import { countBy, type Marker } from '../floor-plan/marker.js'
import type { FloorContext } from '../types.js'
import { useLinkedPlace } from './useLinkedPlace.js'
import { usePlanImage } from './usePlanImage.js'

interface Sources {
  readonly plan: Ref<FloorContext | null>
  readonly people: Ref<readonly Marker[]>
  /** The part of the floor that is received; null for all of it. */
  readonly received: Ref<View | null>
  readonly ambient: Ref<readonly AmbientEntry[]>
  readonly choice: Ref<LayerChoice>
  /** Drawn above the zones, below walls and names. */
  readonly heat: Ref<readonly Layer[]>
}

/** The layers of the plan that are switched on, in drawing order. */
export const usePlanLayers = ({ plan, people, received, ambient, choice, heat }: Sources) => {
  const image = usePlanImage(plan)
  const { place } = useLinkedPlace(plan)
  return computed((): readonly Layer[] => {
    if (!plan.value) return []
    const { floor, zones, walls, receivers } = plan.value
    const isTraced = image.value !== null
    const isOn = choice.value
    return [
      ...(image.value ? [imageLayer(floor, image.value)] : []),
      ...(isOn.zones ? [zonesLayer(zones, isTraced)] : []),
      ...heat.value,
      wallsLayer(walls, isTraced),
      ...(isOn.zones
        ? [
            zoneLabelsLayer(
              zones,
              countBy(people.value, ({ zoneId }) => zoneId ?? ''),
              received.value
            )
          ]
        : []),
      ...(isOn.receivers ? [receiversLayer(receivers)] : []),
      ...(isOn.ambient ? [ambientLayer(ambientMarks(ambient.value, receivers))] : []),
      ...(place.value ? [linkedPlaceLayer(place.value)] : [])
    ]
  })
}
