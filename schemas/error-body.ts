import { type Static, Type } from '@sinclair/typebox'

export const ErrorBodySchema = Type.Object(
  {
    success: Type.Literal(false, { description: 'Always false.' }),
    error: Type.Object(
      {
        code: Type.String({ minLength: 1, maxLength: 64, description: 'The error code for programs.' }),
        message: Type.String({ maxLength: 2000, description: 'The error message for people.' }),
        details: Type.Optional(
          Type.Array(
            Type.Object(
              {
                path: Type.String({ maxLength: 500, description: 'The field as a JSON pointer.' }),
                message: Type.String({ maxLength: 2000, description: 'The error message of the field.' })
              },
              { additionalProperties: false }
            ),
            { maxItems: 100, description: 'One entry per invalid field.' }
          )
        )
      },
      { additionalProperties: false, description: 'The error.' }
    ),
    requestId: Type.String({ minLength: 1, maxLength: 128, description: 'Identifies the request in the logs.' })
  },
  {
    $id: 'ErrorBody',
    title: 'Rejection',
    description: 'The response to a request that the gateway itself rejects.',
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
