import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, integer, MAX_PROPERTIES, maybe, moment, number, text } from './field-kinds.js'
import { id, ids } from './ids.js'

// The kinds of bearers are the backend's: the ones named here are the usual ones, not all that may come.
const bearerKind = maybe(text('Who or what carries it: employee, visitor, contractor, asset and the like.', 64))

const details = {
  name: maybe(text('The name of the transmitter.')),
  entity_type: bearerKind,
  entityId: maybe(id('Who or what carries it, by id.')),
  macAddress: maybe(text('The hardware address.', 64)),
  uuid: maybe(text('The UUID that it sends.', 64)),
  major: maybe(integer(0, 65_535, 'The major number that it sends.')),
  minor: maybe(integer(0, 65_535, 'The minor number that it sends.')),
  serialNumber: maybe(text('The serial number.', 128)),
  model: maybe(text('The make.')),
  txPower: maybe(number(-200, 100, 'The signal strength at one metre, in dBm.')),
  batteryLevel: maybe(number(0, 100, 'The charge of the battery, in percent.')),
  departmentId: maybe(id('The department that it belongs to.')),
  firstName: maybe(text('The given name of the person who carries it.')),
  lastName: maybe(text('The family name of the person who carries it.')),
  status: maybe(text('Its state.', 64)),
  isActive: maybe(flag('Whether it is in use.')),
  assignedAt: maybe(moment('When it was handed out.')),
  expiresAt: maybe(moment('When it must be back.')),
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
  description: 'What a transmitter is from now on.',
  examples: [{ name: 'Badge 0042', entity_type: 'visitor', isActive: true, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type TransmitterUpdate = Static<typeof TransmitterUpdateSchema>

export const TransmitterPatchSchema = Type.Object(details, {
  $id: 'TransmitterPatch',
  title: 'Changed transmitter',
  description: 'Single fields of a transmitter that change.',
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
    entityId: maybe(id('Who or what carries it from now on; null takes it back.')),
    personnelId: maybe(id('The person who carries it.')),
    assetId: maybe(id('The asset that carries it.')),
    assignedAt: maybe(moment('When it was handed out.')),
    expiresAt: maybe(moment('When it must be back.')),
    note: maybe(text('Anything to remember about it.', 2000))
  },
  {
    $id: 'TransmitterAssign',
    title: 'Assigned transmitter',
    description: 'Which transmitter is carried by whom or what.',
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
          { id: maybe(id('The transmitter, where it exists already.')), ...details },
          { additionalProperties: true, maxProperties: MAX_PROPERTIES }
        ),
        { maxItems: 1000, description: 'Transmitters to create or to change.' }
      )
    ),
    ids: maybe(ids('Transmitters that all get the same changes.')),
    action: maybe(text('What to do with them.', 64)),
    changes: maybe(anything('The fields that change.'))
  },
  {
    $id: 'TransmitterBulk',
    title: 'Many transmitters',
    description: 'Many transmitters at once: a list of them, or ids and what changes.',
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
