import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, integer, MAX_PROPERTIES, maybe, moment, number, text } from './field-kinds.js'
import { id, ids } from './ids.js'

// Not an enum: the backend defines the types, and these are only common examples.
const bearerKind = maybe(text('The type of carrier, such as employee, visitor, contractor or asset.', 64))

const details = {
  name: maybe(text('The name of the transmitter.')),
  entity_type: bearerKind,
  entityId: maybe(id('The id of the carrier.')),
  macAddress: maybe(text('The hardware address.', 64)),
  uuid: maybe(text('The UUID that the beacon broadcasts.', 64)),
  major: maybe(integer(0, 65_535, 'The major number that the beacon broadcasts.')),
  minor: maybe(integer(0, 65_535, 'The minor number that the beacon broadcasts.')),
  serialNumber: maybe(text('The serial number.', 128)),
  model: maybe(text('The model.')),
  txPower: maybe(number(-200, 100, 'The signal strength at one metre, in dBm.')),
  batteryLevel: maybe(number(0, 100, 'The charge of the battery, in percent.')),
  departmentId: maybe(id('The department that it belongs to.')),
  firstName: maybe(text('The given name of the person who carries it.')),
  lastName: maybe(text('The family name of the person who carries it.')),
  company: maybe(text('The company of the person who carries it.')),
  status: maybe(text('The status.', 64)),
  isActive: maybe(flag('Whether it is in use.')),
  assignedAt: maybe(moment('The time of assignment.')),
  expiresAt: maybe(moment('The time by which it must be returned.')),
  metadata: maybe(anything('Anything else that belongs to the transmitter.'))
}

export const TransmitterCreateSchema = Type.Object(details, {
  $id: 'TransmitterCreate',
  title: 'New transmitter',
  description: 'A transmitter to create.',
  examples: [
    { name: 'Badge 0042', entity_type: 'employee', entityId: 12, macAddress: 'AC:23:3F:00:00:01', metadata: {} }
  ],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type TransmitterCreate = Static<typeof TransmitterCreateSchema>

export const TransmitterUpdateSchema = Type.Object(details, {
  $id: 'TransmitterUpdate',
  title: 'Replaced transmitter',
  description: 'The new fields of a transmitter.',
  examples: [{ name: 'Badge 0042', entity_type: 'visitor', isActive: true, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type TransmitterUpdate = Static<typeof TransmitterUpdateSchema>

export const TransmitterPatchSchema = Type.Object(details, {
  $id: 'TransmitterPatch',
  title: 'Transmitter update',
  description: 'The fields of a transmitter to change.',
  examples: [{ isActive: false, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type TransmitterPatch = Static<typeof TransmitterPatchSchema>

export const TransmitterAssignSchema = Type.Object(
  {
    transmitterId: maybe(id('The transmitter.')),
    entity_type: bearerKind,
    entityId: maybe(id('The new carrier; null removes the assignment.')),
    personnelId: maybe(id('The person who carries it.')),
    assetId: maybe(id('The asset that carries it.')),
    assignedAt: maybe(moment('The time of assignment.')),
    expiresAt: maybe(moment('The time by which it must be returned.')),
    note: maybe(text('Notes.', 2000))
  },
  {
    $id: 'TransmitterAssign',
    title: 'Transmitter assignment',
    description: 'The assignment of a transmitter.',
    examples: [{ transmitterId: 'AC233F000001', entity_type: 'employee', entityId: 12 }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type TransmitterAssign = Static<typeof TransmitterAssignSchema>

export const TransmitterBulkSchema = Type.Object(
  {
    transmitters: maybe(
      Type.Array(
        Type.Object(
          { id: maybe(id('The transmitter, if it exists already.')), ...details },
          { additionalProperties: true, maxProperties: MAX_PROPERTIES }
        ),
        { maxItems: 1000, description: 'Transmitters to create or to change.' }
      )
    ),
    ids: maybe(ids('The transmitters to change.')),
    action: maybe(text('The action.', 64)),
    changes: maybe(anything('The fields that change.'))
  },
  {
    $id: 'TransmitterBulk',
    title: 'Bulk update of transmitters',
    description: 'A bulk change of transmitters: a list of transmitters, or ids and the fields to change.',
    examples: [
      { transmitters: [{ name: 'Badge 0043', entity_type: 'visitor', metadata: {} }] },
      { ids: [1, 2], action: 'deactivate', changes: { isActive: false } }
    ],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type TransmitterBulk = Static<typeof TransmitterBulkSchema>
