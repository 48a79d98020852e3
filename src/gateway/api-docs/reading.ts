import type { JsonSchema, OpenApiDocument, Operation, Reference } from './document.js'
import { HTTP_METHODS } from './document.js'

/** One operation with its place in the document. */
export interface PlacedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export const operationsOf = ({ paths }: OpenApiDocument): readonly PlacedOperation[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    HTTP_METHODS.flatMap((method) => {
      const operation = item[method]
      return operation === undefined ? [] : [{ method, path, operation }]
    })
  )

/** What a reference leads to; anything else is returned as it is. */
export type Follow = <Value extends object>(value: Value | Reference) => Value

export const follower =
  (document: OpenApiDocument): Follow =>
  <Value extends object>(value: Value | Reference): Value => {
    const { $ref } = value as JsonSchema
    const steps = $ref?.split('/').slice(1) ?? []
    // Ours always lead somewhere: a test follows each of them.
    return steps.length === 0 ? (value as Value) : (steps.reduce<unknown>(stepInto, document) as Value)
  }

const stepInto = (place: unknown, step: string): unknown => (place as Readonly<Record<string, unknown>>)[step]
