import type { JsonSchema, OpenApiDocument, Operation, Reference } from '../../../src/gateway/api-docs/document.js'
import { HTTP_METHODS } from '../../../src/gateway/api-docs/document.js'

/** An operation with its method and path. */
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

/** Resolves a reference; anything else is returned unchanged. */
export type Follow = <Value extends object>(value: Value | Reference) => Value

export const follower =
  (document: OpenApiDocument): Follow =>
  <Value extends object>(value: Value | Reference): Value => {
    const { $ref } = value as JsonSchema
    const steps = $ref?.split('/').slice(1) ?? []
    // A test resolves every reference of the document.
    return steps.length === 0 ? (value as Value) : (steps.reduce<unknown>(stepInto, document) as Value)
  }

const stepInto = (place: unknown, step: string): unknown => (place as Readonly<Record<string, unknown>>)[step]
