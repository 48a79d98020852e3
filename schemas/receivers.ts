import { type Static, Type } from '@sinclair/typebox'
import { anything, flag, integer, MAX_PROPERTIES, maybe, number, point, text } from './field-kinds.js'
import { id, ids } from './ids.js'

const details = {
  name: maybe(text('The name of the receiver.')),
  macAddress: maybe(text('The hardware address.', 64)),
  serialNumber: maybe(text('The serial number.', 128)),
  model: maybe(text('The model.')),
  firmwareVersion: maybe(text('The version of its firmware.', 64)),
  ipAddress: maybe(text('The network address.', 64)),
  buildingId: maybe(id('The building that it is in.')),
  floorId: maybe(id('The floor that it is on.')),
  zoneId: maybe(id('The zone that it is in.')),
  gatewayId: maybe(id('The gateway that it reports to.')),
  position: maybe(point('The position in metres.')),
  height: maybe(number(-1000, 10_000, 'The height above the floor in metres.')),
  txPower: maybe(number(-200, 100, 'The signal strength at one metre, in dBm.')),
  pathLossExponent: maybe(number(0, 20, 'The path loss exponent around the receiver.')),
  scanIntervalMs: maybe(integer(0, 86_400_000, 'The reporting interval in milliseconds.')),
  status: maybe(text('The status.', 64)),
  isActive: maybe(flag('Whether it is in use.')),
  metadata: maybe(anything('Anything else that belongs to the receiver.'))
}

export const ReceiverCreateSchema = Type.Object(details, {
  $id: 'ReceiverCreate',
  title: 'New receiver',
  description: 'A receiver to create.',
  examples: [
    {
      name: 'Corridor 2-04',
      macAddress: 'AC:23:3F:00:00:01',
      floorId: 'f-2',
      position: { x: 12.5, y: 3, z: 2.4 },
      txPower: -59,
      isActive: true,
      metadata: { mount: 'ceiling' }
    }
  ],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type ReceiverCreate = Static<typeof ReceiverCreateSchema>

export const ReceiverUpdateSchema = Type.Object(details, {
  $id: 'ReceiverUpdate',
  title: 'Receiver update',
  description: 'The fields of a receiver to change.',
  examples: [{ floorId: 'f-3', position: { x: 1, y: 2 }, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type ReceiverUpdate = Static<typeof ReceiverUpdateSchema>

export const ReceiverBulkSchema = Type.Object(
  {
    receivers: maybe(
      Type.Array(
        Type.Object(
          { id: maybe(id('The receiver, if it exists already.')), ...details },
          { additionalProperties: true, maxProperties: MAX_PROPERTIES }
        ),
        { maxItems: 1000, description: 'Receivers to create or to change.' }
      )
    ),
    ids: maybe(ids('The receivers to change.')),
    action: maybe(text('The action.', 64)),
    changes: maybe(anything('The fields that change.'))
  },
  {
    $id: 'ReceiverBulk',
    title: 'Bulk update of receivers',
    description: 'A bulk change of receivers: a list of receivers, or ids and the fields to change.',
    examples: [
      {
        receivers: [
          {
            name: 'Corridor 2-04',
            macAddress: 'AC:23:3F:00:00:01',
            position: { x: 12.5, y: 3 },
            metadata: { mount: 'ceiling' }
          }
        ]
      },
      { ids: [4, 5], action: 'update', changes: { floorId: 'f-3' } }
    ],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type ReceiverBulk = Static<typeof ReceiverBulkSchema>
