import { Type } from '@sinclair/typebox'

// Backends use numbers or text as ids. Both are forwarded unchanged.
const TextId = Type.String({ minLength: 1, maxLength: 128 })
const NumberId = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** A field that holds an id. */
export const id = (description: string) => Type.Union([TextId, NumberId], { description })

export const ids = (description: string, minItems = 0) =>
  Type.Array(Type.Union([TextId, NumberId]), { minItems, maxItems: 10_000, description })
