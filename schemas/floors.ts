import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, integer, label, MAX_PROPERTIES, maybe, moment, number, point, text } from './field-kinds.js'
import { id } from './ids.js'

const name = label('The name of the floor.')

const details = {
  buildingId: maybe(id('The building that the floor is in.')),
  level: maybe(integer(-200, 1000, 'The storey: 0 is the ground floor, basements are negative.')),
  description: maybe(text('The purpose of the floor.', 2000)),
  width: maybe(number(0, 1e6, 'The width in metres.')),
  height: maybe(number(0, 1e6, 'The depth in metres, along the y axis of the plan.')),
  imageUrl: maybe(text('The URL of the plan.', 2048)),
  imageWidth: maybe(integer(0, 1_000_000, 'The width of the plan in pixels.')),
  imageHeight: maybe(integer(0, 1_000_000, 'The height of the plan in pixels.')),
  pixelsPerMetre: maybe(number(0, 1e6, 'The scale of the plan.')),
  rotation: maybe(number(-360, 360, 'The rotation of the plan in degrees.')),
  displayOrder: maybe(integer(0, 1_000_000, 'The position in the list of floors.')),
  isActive: maybe(flag('Whether the floor is in use.')),
  metadata: maybe(anything('Anything else that belongs to the floor.'))
}

export const FloorCreateSchema = Type.Object(
  { name, ...details },
  {
    $id: 'FloorCreate',
    title: 'New floor',
    description: 'A floor to create.',
    examples: [{ name: 'Second floor', buildingId: 3, level: 2, width: 48.5, height: 20, metadata: { wing: 'north' } }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type FloorCreate = Static<typeof FloorCreateSchema>

export const FloorUpdateSchema = Type.Object(
  { name: Type.Optional(name), ...details },
  {
    $id: 'FloorUpdate',
    title: 'Floor update',
    description: 'The fields of a floor to change.',
    examples: [{ level: 3, pixelsPerMetre: 24.5, metadata: {} }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type FloorUpdate = Static<typeof FloorUpdateSchema>

const referencePoint = Type.Object(
  {
    pixel: Type.Optional(point('The position on the plan in pixels.')),
    metre: Type.Optional(point('The same position on the floor in metres.')),
    receiverId: maybe(id('The receiver at this point.')),
    label: maybe(text('A description of the point.'))
  },
  { additionalProperties: true, maxProperties: MAX_PROPERTIES }
)

export const FloorCalibrationSchema = Type.Object(
  {
    referencePoints: maybe(
      Type.Array(referencePoint, {
        maxItems: 1000,
        description: 'Reference points with coordinates on the plan and on the floor.'
      })
    ),
    pixelsPerMetre: maybe(number(0, 1e6, 'The scale, if known.')),
    rotation: maybe(number(-360, 360, 'The rotation of the plan in degrees.')),
    origin: maybe(point('The origin of the floor in pixels.')),
    method: maybe(text('The calibration method.', 64)),
    dryRun: maybe(flag('Whether to compute the result without saving it.'))
  },
  {
    $id: 'FloorCalibration',
    title: 'Floor calibration',
    description: 'Calibration data of a floor plan: scale and position.',
    examples: [
      {
        referencePoints: [
          { pixel: { x: 120, y: 80 }, metre: { x: 0, y: 0 }, label: 'Stairs' },
          { pixel: { x: 1320, y: 80 }, metre: { x: 48.5, y: 0 }, receiverId: 'r-9' }
        ],
        rotation: 0,
        origin: { x: 120, y: 80 }
      }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type FloorCalibration = Static<typeof FloorCalibrationSchema>

export const FloorCalibrationAcceptSchema = Type.Object(
  {
    calibrationId: maybe(id('The calibration to accept.')),
    pixelsPerMetre: maybe(number(0, 1e6, 'The scale to accept.')),
    rotation: maybe(number(-360, 360, 'The rotation of the plan in degrees.')),
    origin: maybe(point('The origin of the floor in pixels.')),
    acceptedAt: maybe(moment('The time of acceptance.')),
    note: maybe(text('Notes.', 2000))
  },
  {
    $id: 'FloorCalibrationAccept',
    title: 'Accepted calibration',
    description: 'The computed calibration of a floor plan to accept.',
    examples: [{ calibrationId: 12, pixelsPerMetre: 24.7, rotation: 0, origin: { x: 120, y: 80 } }, {}],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type FloorCalibrationAccept = Static<typeof FloorCalibrationAcceptSchema>
