import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, integer, label, MAX_PROPERTIES, maybe, number, text } from './field-kinds.js'
import { id } from './ids.js'

const name = label('The name of the building.')

const details = {
  code: maybe(text('A short name.', 64)),
  description: maybe(text('The purpose of the building.', 2000)),
  address: maybe(text('The postal address.', 500)),
  city: maybe(text('The city.')),
  postalCode: maybe(text('The postal code.', 32)),
  country: maybe(text('The country.', 100)),
  latitude: maybe(number(-90, 90, 'Latitude in degrees.')),
  longitude: maybe(number(-180, 180, 'Longitude in degrees.')),
  timezone: maybe(text('The time zone, such as Europe/Berlin.', 64)),
  floorCount: maybe(integer(0, 1000, 'The number of floors.')),
  displayOrder: maybe(integer(0, 1_000_000, 'The position in the list of buildings.')),
  isActive: maybe(flag('Whether the building is in use.')),
  metadata: maybe(anything('Anything else that belongs to the building.'))
}

export const BuildingCreateSchema = Type.Object(
  { name, ...details },
  {
    $id: 'BuildingCreate',
    title: 'New building',
    description: 'A building to create.',
    examples: [
      {
        name: 'North Wing',
        code: 'NW',
        address: '1 Example Street',
        latitude: 52.52,
        longitude: 13.405,
        timezone: 'Europe/Berlin',
        floorCount: 4,
        metadata: { costCentre: '4711' }
      }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type BuildingCreate = Static<typeof BuildingCreateSchema>

export const BuildingUpdateSchema = Type.Object(
  { name: Type.Optional(name), ...details },
  {
    $id: 'BuildingUpdate',
    title: 'Building update',
    description: 'The fields of a building to change.',
    examples: [{ name: 'North Wing (closed)', isActive: false, metadata: {} }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type BuildingUpdate = Static<typeof BuildingUpdateSchema>

const buildingPosition = Type.Object(
  { id: id('The building.'), position: integer(0, 1_000_000, 'The position in the list.') },
  { additionalProperties: true, maxProperties: MAX_PROPERTIES }
)

export const BuildingOrderSchema = Type.Object(
  {
    order: Type.Optional(
      Type.Array(Type.Union([id('The building.'), buildingPosition]), {
        maxItems: 1000,
        description: 'The buildings in order, or each with its position.'
      })
    )
  },
  {
    $id: 'BuildingOrder',
    title: 'Building order',
    description: 'The order in which buildings are listed.',
    examples: [{ order: [3, 1, 'b-2'] }, { order: [{ id: 3, position: 0 }] }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type BuildingOrder = Static<typeof BuildingOrderSchema>
