import { type Static, Type } from '@sinclair/typebox'
import { email, label, maybe, text } from '../schemas/field-kinds.js'
import { id } from '../schemas/ids.js'

// The bodies of visits, which page and backend share.

export const VISIT_KINDS = ['visitor', 'contractor'] as const
export type VisitKind = (typeof VISIT_KINDS)[number]

/** A point in time with its offset from UTC. */
const time = (description: string) =>
  Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d)$', description })

const fields = {
  name: label('The name of the person.'),
  kind: Type.Union(
    VISIT_KINDS.map((kind) => Type.Literal(kind)),
    { description: 'Visitor or contractor.' }
  ),
  company: maybe(text('The company of the person.')),
  email: maybe(email('An e-mail address.')),
  phone: maybe(text('A phone number.', 64)),
  hostId: maybe(id('The employee who is visited.')),
  expectedFrom: time('The beginning of the visit.'),
  expectedTo: time('The end of the visit. Later, a person who is still on site is overdue.'),
  notes: maybe(text('Notes about the visit.', 2000))
}

const { kind, ...others } = fields

/** A visit to create: a visitor, unless it has another kind. */
export const VisitCreateSchema = Type.Object(
  { ...others, kind: Type.Optional(kind) },
  { $id: 'VisitCreate', title: 'New visit', additionalProperties: false }
)

export const VisitUpdateSchema = Type.Partial(Type.Object(fields), {
  $id: 'VisitUpdate',
  title: 'Visit update',
  additionalProperties: false,
  minProperties: 1
})
export type VisitUpdate = Static<typeof VisitUpdateSchema>

export const CheckInSchema = Type.Object(
  { transmitterId: label('A transmitter that is free.', 128) },
  { $id: 'CheckIn', title: 'Check-in', additionalProperties: false }
)

export const CheckOutSchema = Type.Object({}, { $id: 'CheckOut', title: 'Check-out', additionalProperties: false })
