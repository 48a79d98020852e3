import { crud } from '../crud.js'
import { Refusal } from '../errors.js'
import { about } from '../queries.js'
import { changeRecords, getRecord, updateRecord } from '../records.js'
import { floors } from '../resources.js'
import { fileAnswer, type Handlers, handler, idOf, type Run } from '../route.js'
import { distance, type Point } from '../site/geometry.js'
import { planSvg } from '../site/plan-svg.js'
import { storedImage, storeImage } from '../uploads.js'
import type { Fields } from '../world.js'

const MAX_PLAN_BYTES = 10 * 1024 * 1024

/** What was uploaded, or else what is drawn from the rooms. */
const plan: Run = async (call) => {
  const uploaded = await storedImage(call, floors)
  if (uploaded !== null) return uploaded
  const { id, width, height } = await getRecord(call, floors, idOf(call))
  const laid = call.site.flatMap((building) => building.floors).find(({ floorId }) => floorId === id)
  // A floor that was added later has no rooms yet.
  const empty = { regions: [], walls: [], width: Number(width ?? 10), height: Number(height ?? 10) }
  return fileAnswer('image/svg+xml', planSvg(laid ?? empty))
}

const upload: Run = async (call) => {
  const bytes = await storeImage(call, floors)
  return { floorId: idOf(call), imageUrl: `/api/floors/${idOf(call)}/plan`, bytes }
}

const calibrate: Run = async (call) => {
  const calibration = calibrationOf(call.body)
  if (call.body.dryRun !== true) await changeRecords(call, floors, [idOf(call)], { calibration })
  return calibration
}

const accept: Run = async (call) => {
  const { calibration } = await getRecord(call, floors, idOf(call))
  const { pixelsPerMetre, rotation, origin }: Fields = { ...(calibration as Fields | undefined), ...call.body }
  if (typeof pixelsPerMetre !== 'number')
    throw new Refusal(409, 'NO_CALIBRATION', 'Work out a calibration first, or send its scale along.')
  const scale = { pixelsPerMetre, rotation: rotation ?? 0, origin: origin ?? null }
  return updateRecord(call, floors, idOf(call), { ...scale, calibration: null })
}

type Place = Readonly<Record<'pixel' | 'metre', Point>>

/** The scale and turn of a plan, from the first two places that are known both on it and on the floor. */
const calibrationOf = ({ referencePoints, pixelsPerMetre, rotation, origin }: Fields) => {
  const sent = Array.isArray(referencePoints) ? (referencePoints as Partial<Place>[]) : []
  const points = sent.filter((point): point is Place => point.pixel !== undefined && point.metre !== undefined)
  const [first, second] = points
  if (first === undefined || second === undefined) {
    if (typeof pixelsPerMetre === 'number')
      return { pixelsPerMetre, rotation: rotation ?? 0, origin: origin ?? null, points: 0 }
    throw new Refusal(422, 'TOO_FEW_POINTS', 'Two places are needed that are known both on the plan and on the floor.')
  }
  const metres = distance(first.metre, second.metre)
  if (metres === 0) throw new Refusal(422, 'TOO_FEW_POINTS', 'The two places are the same one.')
  const turn = (angleOf(first.pixel, second.pixel) - angleOf(first.metre, second.metre)) * (180 / Math.PI)
  const scale = distance(first.pixel, second.pixel) / metres
  const begin = { x: first.pixel.x - first.metre.x * scale, y: first.pixel.y - first.metre.y * scale }
  return { pixelsPerMetre: scale, rotation: rotation ?? turn, origin: origin ?? begin, points: points.length }
}

const angleOf = (from: Point, to: Point): number => Math.atan2(to.y - from.y, to.x - from.x)

/** Floors, their plans and the scale of these. */
export const floorRoutes: Handlers = {
  ...crud(floors),
  'GET /api/floors/:floorId/plan': handler('floors.read', plan),
  'POST /api/floors/:floorId/upload': handler('floors.update', upload, { bodyLimit: MAX_PLAN_BYTES, status: 201 }),
  'POST /api/floors/:floorId/calibrate': handler('floors.update', about(floors, calibrate)),
  'POST /api/floors/:floorId/calibrate/accept': handler('floors.update', accept)
}
