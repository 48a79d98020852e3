import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, integer, label, MAX_PROPERTIES, maybe, moment, number, point, text } from './field-kinds.js'
import { id } from './ids.js'

const name = label('The name of the floor.')

const details = {
  buildingId: maybe(id('The building that the floor is in.')),
  level: maybe(integer(-200, 1000, 'Which storey: 0 is the ground, below it is negative.')),
  description: maybe(text('What the floor is for.', 2000)),
  width: maybe(number(0, 1e6, 'The width in metres.')),
  height: maybe(number(0, 1e6, 'The depth in metres, along the y axis of the plan.')),
  imageUrl: maybe(text('Where the plan is to be had.', 2048)),
  imageWidth: maybe(integer(0, 1_000_000, 'The width of the plan in pixels.')),
  imageHeight: maybe(integer(0, 1_000_000, 'The height of the plan in pixels.')),
  pixelsPerMetre: maybe(number(0, 1e6, 'The scale of the plan.')),
  rotation: maybe(number(-360, 360, 'How far the plan is turned, in degrees.')),
  displayOrder: maybe(integer(0, 1_000_000, 'The place in the list of floors.')),
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
    title: 'Changed floor',
    description: 'What changes about a floor.',
    examples: [{ level: 3, pixelsPerMetre: 24.5, metadata: {} }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type FloorUpdate = Static<typeof FloorUpdateSchema>

const referencePoint = Type.Object(
  {
    pixel: Type.Optional(point('The place on the plan, in pixels.')),
    metre: Type.Optional(point('The same place on the floor, in metres.')),
    receiverId: maybe(id('The receiver that hangs there.')),
    label: maybe(text('What is to be seen there.'))
  },
  { additionalProperties: true, maxProperties: MAX_PROPERTIES }
)

export const FloorCalibrationSchema = Type.Object(
  {
    referencePoints: maybe(
      Type.Array(referencePoint, { maxItems: 1000, description: 'Places known both on the plan and on the floor.' })
    ),
    pixelsPerMetre: maybe(number(0, 1e6, 'The scale, where it is known.')),
    rotation: maybe(number(-360, 360, 'How far the plan is turned, in degrees.')),
    origin: maybe(point('The pixel at which the floor begins.')),
    method: maybe(text('How the calibration is to be computed.', 64)),
    dryRun: maybe(flag('Whether only to compute and not to keep the result.'))
  },
  {
    $id: 'FloorCalibration',
    title: 'Floor calibration',
    description: 'What is known about the scale and position of a floor plan.',
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
    calibrationId: maybe(id('The calibration to keep.')),
    pixelsPerMetre: maybe(number(0, 1e6, 'The scale to keep.')),
    rotation: maybe(number(-360, 360, 'How far the plan is turned, in degrees.')),
    origin: maybe(point('The pixel at which the floor begins.')),
    acceptedAt: maybe(moment('When it was accepted.')),
    note: maybe(text('Anything to remember about it.', 2000))
  },
  {
    $id: 'FloorCalibrationAccept',
    title: 'Accepted calibration',
    description: 'Which computed calibration of a floor plan is to be kept.',
    examples: [{ calibrationId: 12, pixelsPerMetre: 24.7, rotation: 0, origin: { x: 120, y: 80 } }, {}],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type FloorCalibrationAccept = Static<typeof FloorCalibrationAcceptSchema>
