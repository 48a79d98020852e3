import { type Static, Type } from '@sinclair/typebox'
import { anything, label, MAX_PROPERTIES, maybe, moment, number, point, text } from './field-kinds.js'
import { id } from './ids.js'

export const NegotiateRequestSchema = Type.Object(
  {
    channels: maybe(
      Type.Array(Type.String({ maxLength: 255 }), { maxItems: 1000, description: 'The channels to be listened to.' })
    ),
    floorId: maybe(id('The floor to be shown.')),
    clientId: maybe(id('What the page calls itself.')),
    info: maybe(anything('What else the page says about itself.'))
  },
  {
    $id: 'NegotiateRequest',
    title: 'Realtime connection',
    description: 'A request for the address of the relay and a token for it. Nothing has to be said.',
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
    position: point('Where it is.'),
    positionMethod: label('How that was computed.', 64),
    floorId: id('The floor that it is on.'),
    zoneId: maybe(id('The zone that it is in.')),
    accuracy: maybe(number(0, 1e9, 'How far off it may be, in metres.')),
    confidence: maybe(number(0, 100, 'How certain that is.')),
    timestamp: maybe(moment('When it was there.'))
  },
  {
    $id: 'PositionEntry',
    title: 'Position',
    description: 'Where one transmitter is.',
    examples: [aPosition],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type PositionEntry = Static<typeof PositionEntrySchema>

export const PositionBatchSchema = Type.Object(
  {
    type: Type.Literal('position-batch', { description: 'Tells the two kinds of batches apart.' }),
    // Not the entry's schema itself: a validator would meet its $id twice.
    data: Type.Array(
      Type.Object(PositionEntrySchema.properties, { additionalProperties: true, maxProperties: MAX_PROPERTIES }),
      { maxItems: 10_000, description: 'The positions.' }
    )
  },
  {
    $id: 'PositionBatch',
    title: 'Positions on a floor',
    description: 'What is published on the channel of a floor.',
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
    deviceType: text('What kind of device it is.', 64),
    manufacturer: maybe(text('Who made it, where that is known.')),
    receiverId: id('The receiver that heard it.'),
    rssi: number(-200, 100, 'How strong the signal was, in dBm.'),
    timestamp: moment('When it was heard.')
  },
  {
    $id: 'AmbientEntry',
    title: 'Ambient device',
    description: 'A device that is near but not one of ours.',
    examples: [aDevice],
    additionalProperties: false
  }
)
export type AmbientEntry = Static<typeof AmbientEntrySchema>

export const AmbientBatchSchema = Type.Object(
  {
    type: Type.Literal('ambient-batch', { description: 'Tells the two kinds of batches apart.' }),
    data: Type.Array(Type.Object(AmbientEntrySchema.properties, { additionalProperties: false }), {
      maxItems: 10_000,
      description: 'The devices.'
    })
  },
  {
    $id: 'AmbientBatch',
    title: 'Ambient devices',
    description: 'What is published to all pages when ambient devices have been classified.',
    examples: [{ type: 'ambient-batch', data: [aDevice, { ...aDevice, manufacturer: null }] }],
    additionalProperties: false
  }
)
export type AmbientBatch = Static<typeof AmbientBatchSchema>
