import type { TObject } from '@sinclair/typebox'
import type { CallOptions } from '../../src/client/api/calls.js'
import type { FieldSpec, Option, Values } from './form-fields.js'
import type { ListAnswer } from './types.js'

export type Tone = '' | 'good' | 'warning' | 'danger'

export interface Column<Row> {
  readonly title: string
  readonly text: (row: Row) => string | number | null | undefined
  /** Shown as a chip of this colour. */
  readonly tone?: (row: Row) => Tone
  /** Left out on a phone, which has no room for it. */
  readonly isWideOnly?: boolean
}

type Query = Readonly<Record<string, string | null>>

/** Rows that a page lists, and what may be done with them; a call that is not there is not offered. */
export interface Records<Row> {
  readonly title: string
  /** One of them, and many. */
  readonly nouns: readonly [string, string]
  readonly list: (options: CallOptions) => Promise<ListAnswer<Row>>
  readonly nameOf: (row: Row) => string
  readonly columns: readonly Column<Row>[]
  /** Says what can be searched. */
  readonly search?: string
  readonly filter?: { readonly name: string; readonly label: string; readonly options: readonly Option[] }
  readonly downloads?: readonly (readonly [name: string, (options: { query: Query }) => Promise<File>])[]
  readonly form?: { readonly schema: TObject; readonly specs: (row: Row | null) => readonly (string | FieldSpec)[] }
  readonly create?: ((body: Values) => Promise<unknown>) | undefined
  readonly update?: ((id: string, body: Values) => Promise<unknown>) | undefined
  readonly remove?: ((id: string) => Promise<unknown>) | undefined
  /** What becomes of one that is deleted. */
  readonly removal?: string
}
