import type { FloorRecord } from '../types.js'

/** A step that makes a new floor usable. */
export interface NextStep {
  readonly text: string
  readonly to: string
  readonly isDone: boolean
}

type Described = Pick<FloorRecord, 'id' | 'width' | 'height' | 'planImage' | 'calibratedAt'>
type Counts = Readonly<Record<'zones' | 'receivers', number>>

/** The next steps for a new floor, in this order. */
export const nextSteps = (floor: Described, { zones, receivers }: Counts): readonly NextStep[] => {
  const plan = `/floors/${floor.id}`
  const onFloor = `?floorId=${encodeURIComponent(floor.id)}`
  const isCalibrated = floor.planImage !== null && Boolean(floor.calibratedAt)
  return [
    { text: 'Enter the width and depth of the floor.', to: plan, isDone: Boolean(floor.width && floor.height) },
    { text: 'Upload a plan and calibrate it.', to: plan, isDone: isCalibrated },
    { text: 'Add zones and draw their areas.', to: `/zones${onFloor}`, isDone: zones > 0 },
    { text: 'Add the receivers of the floor.', to: `/receivers${onFloor}`, isDone: receivers > 0 }
  ]
}

/** A floor with zones and receivers is in use, also without an uploaded plan. */
export const isNewFloor = ({ width, height }: Described, { zones, receivers }: Counts): boolean =>
  !(width && height) || zones === 0 || receivers === 0
