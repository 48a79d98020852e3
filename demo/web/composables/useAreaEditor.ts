import { computed, type Ref, ref, shallowRef } from 'vue'
import { areaOf, type Corner, cornersOutside, type FloorSize, polygonError } from '../../../schemas/polygon.js'
import { moved, onFloor, withCorner, withInserted, withoutCorner } from '../floor-editor/area.js'

/** The corners of a zone while they are edited, with undo. */
export const useAreaEditor = (floor: Ref<FloorSize>, stored: readonly Corner[]) => {
  const corners = shallowRef<readonly Corner[]>(stored)
  const saved = shallowRef(stored)
  const past = shallowRef<readonly (readonly Corner[])[]>([])
  /** Clicks on the plan add corners. */
  const isDrawing = ref(stored.length === 0)

  /** Call before a change, once for all moves of one drag. */
  const remember = (): void => {
    past.value = [...past.value, corners.value]
  }
  const change = (changed: readonly Corner[]): void => {
    remember()
    corners.value = changed
  }
  const error = computed(() => polygonError(corners.value, floor.value))

  return {
    corners,
    isDrawing,
    remember,
    error,
    /** In square metres; null while the corners are not valid. */
    area: computed(() => (error.value === null ? areaOf(corners.value) : null)),
    outside: computed(() => new Set(cornersOutside(corners.value, floor.value))),
    isChanged: computed(() => JSON.stringify(corners.value) !== JSON.stringify(saved.value)),
    /** Takes over the area that another user has stored. */
    takeOver: (area: readonly Corner[]): void => {
      change(area)
      saved.value = area
    },
    canUndo: computed(() => past.value.length > 0),
    undo: (): void => {
      corners.value = past.value.at(-1) ?? corners.value
      past.value = past.value.slice(0, -1)
    },
    /** A new area, corner by corner. */
    draw: (): void => {
      change([])
      isDrawing.value = true
    },
    append: (corner: Corner): void => change([...corners.value, onFloor(corner, floor.value)]),
    /** Without `remember`, because a drag consists of many moves. */
    moveCorner: (index: number, corner: Corner): void => {
      corners.value = withCorner(corners.value, index, onFloor(corner, floor.value))
    },
    /** Exactly as entered, also outside of the floor, so that typing is not disturbed. */
    setCorner: (index: number, corner: Corner): void => change(withCorner(corners.value, index, corner)),
    moveAll: (by: Corner): void => {
      corners.value = moved(corners.value, by, floor.value)
    },
    insertAfter: (index: number): void => change(withInserted(corners.value, index, floor.value)),
    removeCorner: (index: number): void => change(withoutCorner(corners.value, index))
  }
}
