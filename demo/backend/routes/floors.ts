import { crud } from '../crud.js'
import { HttpError } from '../errors.js'
import { about } from '../queries.js'
import { changeRecords, getRecord, updateRecord } from '../records.js'
import { floors } from '../resources.js'
import { type Call, type Handlers, handler, idOf, type Run } from '../route.js'
import { distance, type Point } from '../site/geometry.js'
import { removeImage, showImage, storeImage } from '../uploads.js'
import type { Fields } from '../world.js'

const PLANS = { options: { bodyLimit: 10 * 1024 * 1024 }, status: 201 }
const DEFAULT_PIXELS_PER_METRE = 20

/** Stores the plan. Until it is calibrated, it fills the floor as far as its proportions allow. */
const storePlan: Run = async (call) => {
  const floor = await getRecord(call, floors, idOf(call))
  const { width, height } = await storeImage(call, floors, 'plan')
  const scale = Math.max(width / Number(floor.width), height / Number(floor.height))
  const pixelsPerMetre = Number.isFinite(scale) && scale > 0 ? scale : DEFAULT_PIXELS_PER_METRE
  const placed = { pixelsPerMetre, rotation: 0, origin: { x: 0, y: 0 }, calibration: null, calibratedAt: null }
  return updateRecord(call, floors, idOf(call), { imageWidth: width, imageHeight: height, ...placed })
}

/** `imageUrl: null` in the body of a floor removes its plan. */
const removePlan = async (call: Call, id: string): Promise<void> => {
  if (call.body.imageUrl !== null || !(await removeImage(call, floors))) return
  await changeRecords(call, floors, [id], { imageWidth: null, imageHeight: null, calibratedAt: null })
}

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
  const calibratedAt = call.now().toISOString()
  return updateRecord(call, floors, idOf(call), { pixelsPerMetre, rotation, origin, calibration: null, calibratedAt })
}

type ReferencePoint = Readonly<Record<'pixel' | 'metre', Point>>

/** The scale and rotation of a plan: as sent, or computed from the first two complete reference points. */
const calibrationOf = ({ referencePoints, pixelsPerMetre, rotation, origin }: Fields) => {
  const sent: Partial<ReferencePoint>[] = Array.isArray(referencePoints) ? referencePoints : []
  const points = sent.filter((point): point is ReferencePoint => point.pixel !== undefined && point.metre !== undefined)
  const [first, second] = points
  const metres = first && second ? distance(first.metre, second.metre) : 0
  if (first && second && metres > 0) {
    const angle = angleOf(first.pixel, second.pixel) - angleOf(first.metre, second.metre)
    const scale = distance(first.pixel, second.pixel) / metres
    const along = { x: scale * Math.cos(angle), y: scale * Math.sin(angle) }
    const { pixel, metre } = first
    const begin = {
      x: pixel.x - metre.x * along.x + metre.y * along.y,
      y: pixel.y - metre.x * along.y - metre.y * along.x
    }
    const turn = angle * (180 / Math.PI)
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
  ...crud(floors, { stored: removePlan }),
  'GET /api/floors/:floorId/plan': handler('floors.read', showImage('plan', floors)),
  'POST /api/floors/:floorId/upload': handler('floors.update', storePlan, PLANS),
  'POST /api/floors/:floorId/calibrate': handler('floors.update', about(floors, calibrate)),
  'POST /api/floors/:floorId/calibrate/accept': handler('floors.update', accept)
}
