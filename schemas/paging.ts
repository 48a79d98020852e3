import { type Static, Type } from '@sinclair/typebox'
import { MAX_PROPERTIES } from './field-kinds.js'

export const PagingSchema = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'How many entries to answer with.' })),
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'How many entries to pass over.' })
    ),
    page: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Which page, instead of an offset.' })
    ),
    sort: Type.Optional(Type.String({ maxLength: 64, description: 'The field to sort by.' })),
    order: Type.Optional(
      Type.Union([Type.Literal('asc'), Type.Literal('desc')], { description: 'Smallest first, or largest first.' })
    )
  },
  {
    $id: 'Paging',
    title: 'Paging',
    description: 'The part of a list to read. These parameters go to the backend as they are.',
    examples: [{ limit: 50, offset: 100, sort: 'name', order: 'asc' }],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type Paging = Static<typeof PagingSchema>
