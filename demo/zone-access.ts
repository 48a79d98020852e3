import { Type } from '@sinclair/typebox'
import { maybe } from '../schemas/field-kinds.js'

// The rule for entering a restricted zone, for the web application and the backend of the demo.

/** The categories of people, as transmitters have them. */
export const CATEGORIES = { employee: 'All employees', visitor: 'All visitors', contractor: 'All contractors' } as const

const names = (description: string) =>
  maybe(Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: 1000, description }))

/** Fields of a zone. A person who matches one of them may enter; without any of them, nobody may. */
export const ZoneAccessSchema = Type.Object(
  {
    allowedCategories: maybe(
      Type.Array(Type.Union(Object.keys(CATEGORIES).map((category) => Type.Literal(category))), {
        maxItems: 3,
        description: 'The categories whose people may enter.'
      })
    ),
    allowedDepartmentIds: names('The departments whose people may enter.'),
    allowedJobTitles: names('The job titles of people who may enter.'),
    allowedPersonIds: names('Single people who may enter: `personnel/<id>` or `visits/<id>`.')
  },
  { title: 'Zone access' }
)
