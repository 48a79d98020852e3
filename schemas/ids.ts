import { Type } from '@sinclair/typebox'

// A backend may number its rows or name them; either passes through as it is.
const TextId = Type.String({ minLength: 1, maxLength: 128 })
const NumberId = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** A field that holds an id. */
export const id = (description: string) => Type.Union([TextId, NumberId], { description })

export const ids = (description: string, minItems = 0) =>
  Type.Array(Type.Union([TextId, NumberId]), { minItems, maxItems: 10_000, description })
