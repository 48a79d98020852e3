import { type Static, Type } from '@sinclair/typebox'
import { MAX_PROPERTIES } from './field-kinds.js'

export const PagingSchema = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'The maximum number of entries to return.' })
    ),
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'The number of entries to skip.' })
    ),
    page: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'The page number, as an alternative to the offset.'
      })
    ),
    sort: Type.Optional(Type.String({ maxLength: 64, description: 'The field to sort by.' })),
    order: Type.Optional(
      Type.Union([Type.Literal('asc'), Type.Literal('desc')], { description: 'Ascending or descending order.' })
    )
  },
  {
    $id: 'Paging',
    title: 'Paging',
    description: 'The part of a list to return. The parameters are forwarded to the backend unchanged.',
    examples: [{ limit: 50, offset: 100, sort: 'name', order: 'asc' }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type Paging = Static<typeof PagingSchema>
