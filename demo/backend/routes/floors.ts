import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { crud } from '../crud.js'
import { Refusal } from '../errors.js'
import { type Fields, Records } from '../records.js'
import { floors } from '../resources.js'
import { FileAnswer, type Handlers, handler, idOf } from '../route.js'
import { distance, type Point } from '../site/geometry.js'
import { planSvg } from '../site/plan-svg.js'
import { imageIn, storedFile, storeFile } from '../uploads.js'

const MAX_PLAN_BYTES = 10 * 1024 * 1024

/** Floors, their plans and the scale of these. */
export const floorRoutes = (backend: Backend): Handlers => {
  const { database, now, site } = backend
  const records = new Records(floors, backend)
  const layouts = new Map(site.flatMap((building) => building.floors.map((floor) => [floor.floorId, floor])))
  const ownerOf = (floorId: string): string => `floors/${floorId}`

  return {
    ...crud('/api/floors', floors, backend),
    'GET /api/floors/:floorId/plan': handler(requirePermission('floors', 'read'), async (call) => {
      const id = idOf(call)
      const uploaded = await storedFile(database, ownerOf(id))
      if (uploaded !== null) return uploaded
      const { width, height } = await records.get(database, id)
      // A floor that was added later has no rooms yet.
      const empty = { regions: [], walls: [], width: Number(width ?? 10), height: Number(height ?? 10) }
      return new FileAnswer('image/svg+xml', planSvg(layouts.get(id) ?? empty))
    }),
    'POST /api/floors/:floorId/upload': handler(
      requirePermission('floors', 'update'),
      async (call) => {
        await records.get(database, idOf(call))
        const image = imageIn(call)
        await storeFile(database, ownerOf(idOf(call)), image, now())
        return { floorId: idOf(call), imageUrl: `/api/floors/${idOf(call)}/plan`, bytes: image.bytes.length }
      },
      { bodyLimit: MAX_PLAN_BYTES, status: 201 }
    ),
    'POST /api/floors/:floorId/calibrate': handler(requirePermission('floors', 'update'), async (call) => {
      await records.get(database, idOf(call))
      const calibration = calibrationOf(call.body)
      if (call.body.dryRun !== true) await records.change(database, [idOf(call)], { calibration })
      return calibration
    }),
    'POST /api/floors/:floorId/calibrate/accept': handler(requirePermission('floors', 'update'), async (call) => {
      const { calibration } = await records.get(database, idOf(call))
      const { pixelsPerMetre, rotation, origin } = { ...(calibration as Fields | undefined), ...call.body } as Fields
      if (typeof pixelsPerMetre !== 'number') {
        throw new Refusal(409, 'NO_CALIBRATION', 'Work out a calibration first, or send its scale along.')
      }
      return records.update(database, idOf(call), {
        pixelsPerMetre,
        rotation: rotation ?? 0,
        origin: origin ?? null,
        calibration: null
      })
    })
  }
}

interface ReferencePoint {
  readonly pixel?: Point
  readonly metre?: Point
}

/** The scale and turn of a plan, from the first two places that are known both on it and on the floor. */
const calibrationOf = (body: Fields) => {
  const points = (Array.isArray(body.referencePoints) ? (body.referencePoints as ReferencePoint[]) : []).flatMap(
    ({ pixel, metre }) => (pixel && metre ? [{ pixel, metre }] : [])
  )
  const [first, second] = points
  if (first === undefined || second === undefined) {
    if (typeof body.pixelsPerMetre === 'number') {
      return {
        pixelsPerMetre: body.pixelsPerMetre,
        rotation: body.rotation ?? 0,
        origin: body.origin ?? null,
        points: 0
      }
    }
    throw new Refusal(422, 'TOO_FEW_POINTS', 'Two places are needed that are known both on the plan and on the floor.')
  }
  const metres = distance(first.metre, second.metre)
  if (metres === 0) throw new Refusal(422, 'TOO_FEW_POINTS', 'The two places are the same one.')
  const turn = (angleOf(first.pixel, second.pixel) - angleOf(first.metre, second.metre)) * (180 / Math.PI)
  const pixelsPerMetre = distance(first.pixel, second.pixel) / metres
  const origin = body.origin ?? {
    x: first.pixel.x - first.metre.x * pixelsPerMetre,
    y: first.pixel.y - first.metre.y * pixelsPerMetre
  }
  return { pixelsPerMetre, rotation: body.rotation ?? turn, origin, points: points.length }
}

const angleOf = (from: Point, to: Point): number => Math.atan2(to.y - from.y, to.x - from.x)
