import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, label, MAX_PROPERTIES, maybe, moment, number, text, texts } from './field-kinds.js'
import { id } from './ids.js'

const name = label('The name of the asset.')

const details = {
  assetTag: maybe(text('The number on its label.', 128)),
  serialNumber: maybe(text('The serial number.', 128)),
  type: maybe(text('The kind of asset.', 64)),
  category: maybe(text('The group that it belongs to.')),
  description: maybe(text('The description.', 2000)),
  manufacturer: maybe(text('The manufacturer.')),
  model: maybe(text('The model.')),
  status: maybe(text('The status.', 64)),
  departmentId: maybe(id('The department that owns it.')),
  ownerId: maybe(id('The person responsible for it.')),
  transmitterId: maybe(id('The transmitter on it.')),
  buildingId: maybe(id('The building where it belongs.')),
  floorId: maybe(id('The floor where it belongs.')),
  zoneId: maybe(id('The zone where it belongs.')),
  purchaseDate: maybe(moment('The date of purchase.')),
  value: maybe(number(0, 1e12, 'The value.')),
  tags: maybe(texts('Tags.')),
  isActive: maybe(flag('Whether it is in use.')),
  metadata: maybe(anything('Anything else that belongs to the asset.'))
}

export const AssetCreateSchema = Type.Object(
  { name, ...details },
  {
    $id: 'AssetCreate',
    title: 'New asset',
    description: 'An asset to create.',
    examples: [
      {
        name: 'Infusion pump 7',
        assetTag: 'IP-0007',
        type: 'equipment',
        transmitterId: 'AC233F000002',
        tags: ['mobile'],
        metadata: { service: 'yearly' }
      }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type AssetCreate = Static<typeof AssetCreateSchema>

export const AssetUpdateSchema = Type.Object(
  { name: Type.Optional(name), ...details },
  {
    $id: 'AssetUpdate',
    title: 'Asset update',
    description: 'The fields of an asset to change.',
    examples: [{ status: 'in repair', zoneId: 9, tags: [], metadata: {} }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type AssetUpdate = Static<typeof AssetUpdateSchema>
