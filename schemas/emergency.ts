import { type Static, Type } from '@sinclair/typebox'
import { anything, email, flag, integer, label, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id, ids } from './ids.js'

// An alarm of no type, or of an empty one, would show the wrong instructions.
const type = label('The type of emergency, such as fire or medical. The backend defines the types.', 64)

const details = {
  severity: maybe(id('The severity, as a word or a number.')),
  title: maybe(text('The display name.')),
  message: maybe(text('The message to people on site.', 2000)),
  description: maybe(text('A description of the event.', 5000)),
  buildingId: maybe(id('The building concerned.')),
  floorId: maybe(id('The floor concerned.')),
  zoneId: maybe(id('The zone concerned.')),
  zoneIds: maybe(ids('The zones concerned.')),
  musterZoneId: maybe(id('The assembly area.')),
  transmitterId: maybe(id('The transmitter that raised it.')),
  personnelId: maybe(id('The person who raised it, or who needs help.')),
  position: maybe(anything('The location: on the plan, on the map, or as text.')),
  isDrill: maybe(flag('Whether it is a drill.')),
  startedAt: maybe(moment('The start time.')),
  metadata: maybe(anything('Anything else that belongs to the emergency.'))
}

const examples = [
  {
    type: 'fire',
    severity: 'critical',
    message: 'Leave the building by the north stairs.',
    buildingId: 3,
    zoneIds: [7, 8],
    position: { x: 12, y: 4 },
    isDrill: true,
    metadata: { panel: 'FP-2' }
  }
]

export const EmergencyCreateSchema = Type.Object(
  { type, ...details },
  {
    $id: 'EmergencyCreate',
    title: 'New emergency',
    description: 'An emergency to record.',
    examples,
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type EmergencyCreate = Static<typeof EmergencyCreateSchema>

export const EmergencyUpdateSchema = Type.Object(
  {
    type: Type.Optional(type),
    ...details,
    status: maybe(text('The status.', 64)),
    resolution: maybe(text('The resolution.', 5000)),
    resolvedAt: maybe(moment('The end time.')),
    resolvedBy: maybe(id('The person who ended it.'))
  },
  {
    $id: 'EmergencyUpdate',
    title: 'Emergency update',
    description: 'The fields of an emergency to change.',
    examples: [
      {
        status: 'resolved',
        resolution: 'Burnt toast.',
        resolvedAt: '2025-11-15T09:30:00Z',
        zoneIds: [7],
        position: { x: 12, y: 4 },
        metadata: {}
      }
    ],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type EmergencyUpdate = Static<typeof EmergencyUpdateSchema>

export const EmergencyTriggerSchema = Type.Object(
  { type, ...details },
  {
    $id: 'EmergencyTrigger',
    title: 'Alarm',
    description: 'An alarm to raise immediately.',
    examples: [...examples, { type: 'medical' }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type EmergencyTrigger = Static<typeof EmergencyTriggerSchema>

const name = label('The name of the contact.')

const contactDetails = {
  role: maybe(text('The responsibilities of the contact.')),
  organization: maybe(text('The workplace of the contact.')),
  phone: maybe(text('A phone number.', 64)),
  mobile: maybe(text('A mobile number.', 64)),
  email: maybe(email('An e-mail address.')),
  buildingId: maybe(id('The building that the contact is for.')),
  priority: maybe(integer(0, 1_000_000, 'The priority: the smallest number is called first.')),
  notifyBySms: maybe(flag('Whether alarms are sent as text messages.')),
  notifyByEmail: maybe(flag('Whether alarms are sent by e-mail.')),
  isActive: maybe(flag('Whether the contact is active.')),
  notes: maybe(text('Notes about the contact.', 2000))
}

export const EmergencyContactCreateSchema = Type.Object(
  { name, ...contactDetails },
  {
    $id: 'EmergencyContactCreate',
    title: 'New emergency contact',
    description: 'A contact to create.',
    examples: [{ name: 'Fire brigade', phone: '112', priority: 1, notifyBySms: false }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type EmergencyContactCreate = Static<typeof EmergencyContactCreateSchema>

export const EmergencyContactUpdateSchema = Type.Object(
  { name: Type.Optional(name), ...contactDetails },
  {
    $id: 'EmergencyContactUpdate',
    title: 'Emergency contact update',
    description: 'The fields of a contact to change.',
    examples: [{ phone: '+49 30 1234567', isActive: true }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type EmergencyContactUpdate = Static<typeof EmergencyContactUpdateSchema>
