import type { CallOptions } from '../../src/client/api/calls.js'
import type { IconName } from '../../src/ui/icons.js'
import type { Load } from './composables/useLoad.js'
import type { Form, Task, Values } from './form-fields.js'
import type { ListAnswer } from './types.js'

interface Column<Row> {
  readonly title: string
  readonly text: (row: Row) => string | number | null | undefined
  /** Shown as a chip of this colour. */
  readonly tone?: (row: Row) => '' | 'good' | 'warning' | 'danger'
  /** Left out on a phone, which has no room for it. */
  readonly isWideOnly?: boolean
}

/** Methods, so that calls with a body of their own fit: the client checks what a form hands over before it is sent. */
interface RecordCalls<Row> {
  list(options: CallOptions): Promise<ListAnswer<Row>>
  create?(body: Values): Promise<unknown>
  update?(id: string, body: Values): Promise<unknown>
  delete?(id: string): Promise<unknown>
}

export type RowTask = Task & { readonly icon: IconName }

/** Rows that a page lists, and what may be done with them; a call that is not there is not offered. */
export interface Records<Row> {
  readonly title: string
  /** One of them, and many. */
  readonly nouns: readonly [string, string]
  readonly calls: RecordCalls<Row>
  /** Each call needs the permission of its name for this. Without it, whoever sees the page may do everything. */
  readonly resource?: string
  /** What the form needs to know besides. */
  readonly needs?: readonly Load[]
  readonly nameOf: (row: Row) => string
  /** What stands below the name. */
  readonly detailOf?: (row: Row) => string | null | undefined
  /** The floor to look for it. */
  readonly floorOf?: (row: Row) => string | null
  readonly columns: readonly Column<Row>[]
  /** Says what can be searched. */
  readonly search?: string
  /** Where files of all that was found are to be had: the browser asks for them itself, and keeps them. */
  readonly downloads?: Readonly<Record<string, string>>
  /** For a new one without a row. */
  readonly form?: (row: Row | null) => Pick<Form, 'schema' | 'specs'>
  /** What becomes of one that is deleted. */
  readonly removal?: string
  /** What else can be done with one. */
  readonly tasks?: (row: Row) => readonly RowTask[]
}
