import { crud } from '../crud.js'
import { HttpError } from '../errors.js'
import { about } from '../queries.js'
import { changeRecords, getRecord, updateRecord } from '../records.js'
import { floors } from '../resources.js'
import { type Handlers, handler, idOf, type Run } from '../route.js'
import { distance, type Point } from '../site/geometry.js'
import { images } from '../uploads.js'
import type { Fields } from '../world.js'

const PLANS = { options: { bodyLimit: 10 * 1024 * 1024 }, status: 201 }

const plan = images('plan', floors)

const calibrate: Run = async (call) => {
  const calibration = calibrationOf(call.body)
  if (call.body.dryRun !== true) await changeRecords(call, floors, [idOf(call)], { calibration })
  return calibration
}

const accept: Run = async (call) => {
  const { calibration } = await getRecord(call, floors, idOf(call))
  // A column of JSON, which `calibrate` writes.
  const { pixelsPerMetre, rotation = 0, origin = null }: Fields = { ...(calibration as Fields | null), ...call.body }
  if (typeof pixelsPerMetre !== 'number')
    throw new HttpError(409, 'NO_CALIBRATION', 'Calculate a calibration first, or send its scale.')
  return updateRecord(call, floors, idOf(call), { pixelsPerMetre, rotation, origin, calibration: null })
}

type ReferencePoint = Readonly<Record<'pixel' | 'metre', Point>>

/** The scale and rotation of a plan: as sent, or computed from the first two complete reference points. */
const calibrationOf = ({ referencePoints, pixelsPerMetre, rotation, origin }: Fields) => {
  const sent: Partial<ReferencePoint>[] = Array.isArray(referencePoints) ? referencePoints : []
  const points = sent.filter((point): point is ReferencePoint => point.pixel !== undefined && point.metre !== undefined)
  const [first, second] = points
  const metres = first && second ? distance(first.metre, second.metre) : 0
  if (first && second && metres > 0) {
    const turn = (angleOf(first.pixel, second.pixel) - angleOf(first.metre, second.metre)) * (180 / Math.PI)
    const scale = distance(first.pixel, second.pixel) / metres
    const begin = { x: first.pixel.x - first.metre.x * scale, y: first.pixel.y - first.metre.y * scale }
    return { pixelsPerMetre: scale, rotation: rotation ?? turn, origin: origin ?? begin, points: points.length }
  }
  if (typeof pixelsPerMetre !== 'number')
    throw new HttpError(
      422,
      'TOO_FEW_POINTS',
      'Two places are needed that are known both on the plan and on the floor.'
    )
  return { pixelsPerMetre, rotation: rotation ?? 0, origin: origin ?? null, points: 0 }
}

const angleOf = (from: Point, to: Point): number => Math.atan2(to.y - from.y, to.x - from.x)

/** Floors, their plans and calibrations. */
export const floorRoutes: Handlers = {
  ...crud(floors),
  'GET /api/floors/:floorId/plan': handler('floors.read', plan.show),
  'POST /api/floors/:floorId/upload': handler('floors.update', plan.store, PLANS),
  'POST /api/floors/:floorId/calibrate': handler('floors.update', about(floors, calibrate)),
  'POST /api/floors/:floorId/calibrate/accept': handler('floors.update', accept)
}
