import { type Static, Type } from '@sinclair/typebox'
import { anything, integer, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id } from './ids.js'

export const ErrorReportSchema = Type.Object(
  {
    message: Type.String({ minLength: 1, maxLength: 2000, description: 'The error message.' }),
    name: maybe(text('The kind of error.')),
    stack: maybe(text('The stack trace.', 20_000)),
    url: maybe(text('The page.', 2048)),
    line: maybe(integer(0, Number.MAX_SAFE_INTEGER, 'The line in the script.')),
    column: maybe(integer(0, Number.MAX_SAFE_INTEGER, 'The column in the script.')),
    userAgent: maybe(text('The browser.', 1000)),
    component: maybe(text('The component of the web application.')),
    level: maybe(text('The severity.', 32)),
    timestamp: maybe(moment('The time of the error.')),
    requestId: maybe(id('The id of the failed request.')),
    context: maybe(anything('Additional context.'))
  },
  {
    $id: 'ErrorReport',
    title: 'Error report',
    description: 'An error reported by a web application.',
    examples: [
      {
        message: 'Cannot read properties of undefined',
        stack: 'TypeError: Cannot read properties of undefined\n    at draw (/assets/plan.js:10:5)',
        url: '/floors/2',
        line: 10,
        column: 5,
        component: 'FloorPlan',
        level: 'error',
        timestamp: '2025-11-15T09:30:00Z',
        context: { floorId: 'f-2' }
      }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type ErrorReport = Static<typeof ErrorReportSchema>
