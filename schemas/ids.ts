import { type Static, Type } from '@sinclair/typebox'

// A backend may number its rows or name them; either passes through as it is.
const TextId = Type.String({ minLength: 1, maxLength: 128 })
const NumberId = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** A field that holds an id. Unlike `IdSchema` it carries no `$id`, so that one schema may have several of them. */
export const id = (description: string) => Type.Union([TextId, NumberId], { description })

export const ids = (description: string, minItems = 0) =>
  Type.Array(Type.Union([TextId, NumberId]), { minItems, maxItems: 10_000, description })

export const IdSchema = Type.Union([TextId, NumberId], {
  $id: 'Id',
  title: 'Id',
  description: 'What names one resource: text of at most 128 characters, or a whole number that is not negative.',
  examples: ['f-2', 7]
})
export type Id = Static<typeof IdSchema>
