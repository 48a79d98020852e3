import { type Static, Type } from '@sinclair/typebox'
import { anything, label, MAX_PROPERTIES, maybe, moment, number, point, text } from './field-kinds.js'
import { id } from './ids.js'

export const NegotiateRequestSchema = Type.Object(
  {
    channels: maybe(
      Type.Array(Type.String({ maxLength: 255 }), { maxItems: 1000, description: 'The channels to subscribe to.' })
    ),
    floorId: maybe(id('The floor to show.')),
    clientId: maybe(id('The name of the client.')),
    info: maybe(anything('Additional information about the client.'))
  },
  {
    $id: 'NegotiateRequest',
    title: 'Realtime connection',
    description: 'A request for the address of the relay and a token. All fields are optional.',
    examples: [{}, { channels: ['floor:f-2', 'global:all'], floorId: 'f-2', info: {} }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type NegotiateRequest = Static<typeof NegotiateRequestSchema>

const aPosition = {
  transmitterId: 'AC233F000001',
  position: { x: 12.5, y: 3.25 },
  positionMethod: 'trilateration',
  floorId: 'f-2',
  accuracy: 1.5,
  timestamp: 1763200000000
}

export const PositionEntrySchema = Type.Object(
  {
    transmitterId: id('The transmitter that was found.'),
    position: point('The position.'),
    positionMethod: label('The positioning method.', 64),
    floorId: id('The floor that it is on.'),
    zoneId: maybe(id('The zone that it is in.')),
    accuracy: maybe(number(0, 1e9, 'The accuracy in metres.')),
    confidence: maybe(number(0, 100, 'The confidence.')),
    timestamp: maybe(moment('The time of the position.'))
  },
  {
    $id: 'PositionEntry',
    title: 'Position',
    description: 'The position of one transmitter.',
    examples: [aPosition],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type PositionEntry = Static<typeof PositionEntrySchema>

export const PositionBatchSchema = Type.Object(
  {
    type: Type.Literal('position-batch', { description: 'The type of batch.' }),
    // A copy without $id, because a validator rejects a duplicate $id.
    data: Type.Array(
      Type.Object(PositionEntrySchema.properties, { additionalProperties: true, maxProperties: MAX_PROPERTIES }),
      { maxItems: 10_000, description: 'The positions.' }
    )
  },
  {
    $id: 'PositionBatch',
    title: 'Positions on a floor',
    description: 'A publication on the channel of a floor.',
    examples: [{ type: 'position-batch', data: [aPosition] }],
    additionalProperties: false
  }
)
export type PositionBatch = Static<typeof PositionBatchSchema>

const aDevice = {
  deviceId: '5E:11:22:33:44:55',
  deviceType: 'phone',
  manufacturer: 'Example Inc.',
  receiverId: 'r-9',
  rssi: -71,
  timestamp: 1763200000000
}

export const AmbientEntrySchema = Type.Object(
  {
    deviceId: id('The device that was heard.'),
    deviceType: text('The device type.', 64),
    manufacturer: maybe(text('The manufacturer, if known.')),
    receiverId: id('The receiver that heard it.'),
    rssi: number(-200, 100, 'The signal strength in dBm.'),
    timestamp: moment('The time of the reading.')
  },
  {
    $id: 'AmbientEntry',
    title: 'Ambient device',
    description: 'A nearby device that does not belong to the site.',
    examples: [aDevice],
    additionalProperties: false
  }
)
export type AmbientEntry = Static<typeof AmbientEntrySchema>

export const AmbientBatchSchema = Type.Object(
  {
    type: Type.Literal('ambient-batch', { description: 'The type of batch.' }),
    data: Type.Array(Type.Object(AmbientEntrySchema.properties, { additionalProperties: false }), {
      maxItems: 10_000,
      description: 'The ambient devices.'
    })
  },
  {
    $id: 'AmbientBatch',
    title: 'Ambient devices',
    description: 'A publication to all clients with newly classified ambient devices.',
    examples: [{ type: 'ambient-batch', data: [aDevice, { ...aDevice, manufacturer: null }] }],
    additionalProperties: false
  }
)
export type AmbientBatch = Static<typeof AmbientBatchSchema>
