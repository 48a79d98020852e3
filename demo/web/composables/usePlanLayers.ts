import type { View } from 'gatehouse-client'
import { computed, type Ref } from 'vue'
import type { AmbientEntry } from '../../../schemas/realtime.js'
import { ambientMarks } from '../floor-plan/ambient.js'
import { buildingLayer } from '../floor-plan/building.js'
import { ambientLayer, receiversLayer, zoneLabelsLayer, zonesLayer } from '../floor-plan/ground.js'
import type { Layer, LayerChoice } from '../floor-plan/layer.js'
import { type LinkedPlace, linkedPlaceLayer } from '../floor-plan/linked-place.js'
import { countBy, type Marker } from '../floor-plan/marker.js'
import { type TrailLine, trailLayer } from '../floor-plan/trail-layer.js'
import type { FloorContext } from '../types.js'

interface Sources {
  readonly plan: Ref<FloorContext | null>
  readonly people: Ref<readonly Marker[]>
  /** The part of the floor that is received; null for all of it. */
  readonly received: Ref<View | null>
  readonly ambient: Ref<readonly AmbientEntry[]>
  readonly choice: Ref<LayerChoice>
  readonly place: Ref<LinkedPlace | null>
  readonly trail: Ref<readonly TrailLine[]>
}

/** The layers of the plan that are switched on, in drawing order. An uploaded plan replaces the drawing of the building. */
export const usePlanLayers = ({ plan, people, received, ambient, choice, place, trail }: Sources) =>
  computed((): readonly Layer[] => {
    if (!plan.value) return []
    const { floor, zones, receivers } = plan.value
    const hasPicture = floor.planImage !== null
    const isOn = choice.value
    const counts = countBy(people.value, ({ zoneId }) => zoneId ?? '')
    return [
      ...(isOn.zones ? [zonesLayer(zones, hasPicture)] : []),
      ...(hasPicture ? [] : [buildingLayer(plan.value)]),
      ...(isOn.zones ? [zoneLabelsLayer(zones, counts, received.value)] : []),
      ...(isOn.receivers ? [receiversLayer(receivers)] : []),
      ...(isOn.ambient ? [ambientLayer(ambientMarks(ambient.value, receivers))] : []),
      ...(place.value ? [linkedPlaceLayer(place.value)] : []),
      trailLayer(trail.value)
    ]
  })
