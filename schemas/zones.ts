import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, integer, label, MAX_PROPERTIES, maybe, number, point, text } from './field-kinds.js'
import { id } from './ids.js'

const name = label('The name of the zone.')

const corner = Type.Union([
  point('A corner.'),
  Type.Array(Type.Number({ minimum: -1e9, maximum: 1e9 }), { minItems: 2, maxItems: 3 })
])

const details = {
  buildingId: maybe(id('The building that the zone is in.')),
  floorId: maybe(id('The floor that the zone is on.')),
  zoneTypeId: maybe(id('The id of the zone type.')),
  type: maybe(text('The name of the zone type.', 64)),
  description: maybe(text('The purpose of the zone.', 2000)),
  polygon: maybe(
    Type.Array(corner, { maxItems: 1000, description: 'The corners in order, each as {x, y} or as [x, y].' })
  ),
  center: maybe(point('The centre of a circular zone.')),
  radius: maybe(number(0, 1e6, 'The radius of a circular zone.')),
  color: maybe(text('The colour on the plan as a CSS value.', 64)),
  capacity: maybe(integer(0, 1_000_000, 'The maximum number of people.')),
  isRestricted: maybe(flag('Whether access is restricted.')),
  isEmergency: maybe(flag('Whether the zone is relevant in an emergency.')),
  isMusterPoint: maybe(flag('Whether the zone is a muster point.')),
  isExit: maybe(flag('Whether the zone is an exit.')),
  isActive: maybe(flag('Whether the zone is in use.')),
  metadata: maybe(anything('Anything else that belongs to the zone.'))
}

export const ZoneCreateSchema = Type.Object(
  { name, ...details },
  {
    $id: 'ZoneCreate',
    title: 'New zone',
    description: 'A zone to create.',
    examples: [
      {
        name: 'Assembly area',
        floorId: 'f-2',
        type: 'muster',
        polygon: [
          { x: 0, y: 0 },
          { x: 12.5, y: 0 },
          { x: 12.5, y: 8 }
        ],
        center: { x: 6, y: 4 },
        color: '#2e7d32',
        capacity: 120,
        isMusterPoint: true,
        metadata: { sign: 'A' }
      },
      {
        name: 'Laboratory',
        polygon: [
          [0, 0],
          [4, 0],
          [4, 4]
        ]
      }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type ZoneCreate = Static<typeof ZoneCreateSchema>

export const ZoneUpdateSchema = Type.Object(
  { name: Type.Optional(name), ...details },
  {
    $id: 'ZoneUpdate',
    title: 'Zone update',
    description: 'The fields of a zone to change.',
    examples: [
      {
        name: 'Assembly area B',
        capacity: null,
        isRestricted: false,
        polygon: [
          { x: 0, y: 0 },
          { x: 8, y: 0 },
          { x: 8, y: 6 }
        ],
        center: { x: 6, y: 4 },
        metadata: {}
      }
    ],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type ZoneUpdate = Static<typeof ZoneUpdateSchema>
