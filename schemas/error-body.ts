import { type Static, Type } from '@sinclair/typebox'

export const ErrorBodySchema = Type.Object(
  {
    success: Type.Literal(false, { description: 'Always false.' }),
    error: Type.Object(
      {
        code: Type.String({ minLength: 1, maxLength: 64, description: 'What is wrong, for a program.' }),
        message: Type.String({ maxLength: 2000, description: 'What is wrong, for a person.' }),
        details: Type.Optional(
          Type.Array(
            Type.Object(
              {
                path: Type.String({ maxLength: 500, description: 'Which field, as a JSON pointer.' }),
                message: Type.String({ maxLength: 2000, description: 'What is wrong with it.' })
              },
              { additionalProperties: false }
            ),
            { maxItems: 100, description: 'One entry per fault of the body.' }
          )
        )
      },
      { additionalProperties: false, description: 'The refusal.' }
    ),
    requestId: Type.String({ minLength: 1, maxLength: 128, description: 'Finds this request in the logs.' })
  },
  {
    $id: 'ErrorBody',
    title: 'Refusal',
    description: 'What the gateway answers when it refuses a request itself.',
    examples: [
      {
        success: false,
        error: { code: 'CSRF_MISMATCH', message: 'The CSRF token is missing or wrong. Reload the page.' },
        requestId: '01JCPZ4V6T9R'
      },
      {
        success: false,
        error: {
          code: 'VALIDATION_FAILED',
          message: 'The request body is not valid.',
          details: [{ path: '/name', message: 'Expected string' }]
        },
        requestId: '01JCPZ4V6T9S'
      }
    ],
    additionalProperties: false
  }
)
export type ErrorBody = Static<typeof ErrorBodySchema>
