import { type Static, Type } from '@sinclair/typebox'
import { anything, email, flag, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id, ids } from './ids.js'

const details = {
  name: maybe(text('The name of the person.')),
  firstName: maybe(text('The given name.')),
  lastName: maybe(text('The family name.')),
  employeeId: maybe(id('The employee number.')),
  email: maybe(email('An e-mail address.')),
  phone: maybe(text('A phone number.', 64)),
  jobTitle: maybe(text('The job title.')),
  departmentId: maybe(id('The id of the department.')),
  department: maybe(text('The name of the department.')),
  buildingId: maybe(id('The building where the person usually is.')),
  floorId: maybe(id('The floor where the person usually is.')),
  transmitterId: maybe(id('The transmitter that the person carries.')),
  badgeNumber: maybe(text('The number on the badge.', 64)),
  startDate: maybe(moment('The first day.')),
  endDate: maybe(moment('The last day.')),
  isActive: maybe(flag('Whether the person is active.')),
  isFirstAider: maybe(flag('Whether the person is a first aider.')),
  isFireWarden: maybe(flag('Whether the person is a fire warden.')),
  notes: maybe(text('Notes about the person.', 2000)),
  metadata: maybe(anything('Anything else that belongs to the person.'))
}

export const PersonnelCreateSchema = Type.Object(details, {
  $id: 'PersonnelCreate',
  title: 'New person',
  description: 'A person to create.',
  examples: [
    {
      firstName: 'Ada',
      lastName: 'Example',
      email: 'ada@example.com',
      departmentId: 4,
      transmitterId: 'AC233F000001',
      startDate: '2025-11-03',
      isActive: true,
      metadata: { shift: 'late' }
    }
  ],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type PersonnelCreate = Static<typeof PersonnelCreateSchema>

export const PersonnelUpdateSchema = Type.Object(details, {
  $id: 'PersonnelUpdate',
  title: 'Person update',
  description: 'The fields of a person to change.',
  examples: [{ jobTitle: 'Floor warden', transmitterId: null, metadata: {} }],
  additionalProperties: true,
  minProperties: 1,
  maxProperties: MAX_PROPERTIES
})
export type PersonnelUpdate = Static<typeof PersonnelUpdateSchema>

export const PersonnelBatchDeleteSchema = Type.Object(
  {
    ids: ids('The people to delete.', 1),
    reason: maybe(text('Why.', 500))
  },
  {
    $id: 'PersonnelBatchDelete',
    title: 'People to delete',
    description: 'A bulk deletion of people.',
    examples: [{ ids: [12, 13, 'p-14'], reason: 'Contract ended' }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type PersonnelBatchDelete = Static<typeof PersonnelBatchDeleteSchema>

export const PersonnelBulkSchema = Type.Object(
  {
    ids: ids('The people to change.', 1),
    reason: maybe(text('Why.', 500))
  },
  {
    $id: 'PersonnelBulk',
    title: 'Bulk update of people',
    description: 'A bulk activation or deactivation of people.',
    examples: [{ ids: [12, 13], reason: 'Season starts' }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type PersonnelBulk = Static<typeof PersonnelBulkSchema>
