import { type Static, Type } from '@sinclair/typebox'
import { anything, integer, MAX_PROPERTIES, maybe, moment, text } from './field-kinds.js'
import { id } from './ids.js'

export const ErrorReportSchema = Type.Object(
  {
    message: Type.String({ minLength: 1, maxLength: 2000, description: 'What went wrong.' }),
    name: maybe(text('The kind of error.')),
    stack: maybe(text('Where in the script.', 20_000)),
    url: maybe(text('The page.', 2048)),
    line: maybe(integer(0, Number.MAX_SAFE_INTEGER, 'The line in the script.')),
    column: maybe(integer(0, Number.MAX_SAFE_INTEGER, 'The column in the script.')),
    userAgent: maybe(text('The browser.', 1000)),
    component: maybe(text('The part of the page.')),
    level: maybe(text('How bad it is.', 32)),
    timestamp: maybe(moment('When it happened.')),
    requestId: maybe(id('The request that failed, as the gateway numbered it.')),
    context: maybe(anything('What else the page knew.'))
  },
  {
    $id: 'ErrorReport',
    title: 'Error report',
    description: 'An error that a page met and reports.',
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
