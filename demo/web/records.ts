import type { CallOptions } from 'gatehouse-client'
import type { Download } from 'gatehouse-client/buildings'
import type { Ref } from 'vue'
import type { RouteLocationRaw } from 'vue-router'
import { capitalized } from '../../src/ui/format.js'
import type { IconName } from '../../src/ui/icons.js'
import type { Load } from './composables/useLoad.js'
import type { Form, Task, Values } from './form-fields.js'
import type { Place } from './live-link.js'
import type { ListResponse, Named } from './types.js'

export interface Column<Row> {
  readonly title: string
  readonly text: (row: Row) => string | number | null | undefined
  /** The field that the backend sorts by. Without it the column cannot be sorted. */
  readonly sort?: string
  /** Numbers and times are first sorted in descending order. */
  readonly isNumber?: boolean
  /** Shows the text as a chip of this colour. */
  readonly tone?: (row: Row) => '' | 'good' | 'warning' | 'danger'
  /** Hidden on phones. */
  readonly isWideOnly?: boolean
  /** Hidden in a table that is too narrow for all columns. */
  readonly isRoomyOnly?: boolean
}

/** A query parameter of the list. */
export interface Filter {
  readonly name: string
  readonly label: string
  /** The possible values, or a point in time. */
  readonly options: readonly Named[] | 'time'
}

/** The options of the filter `isOnSite`. */
export const PRESENCE: readonly Named[] = [
  { id: 'true', name: 'On site' },
  { id: 'false', name: 'Off site' }
]

/** The options of a choice, from titles by value. */
export const namedOptions = (titles: Readonly<Record<string, string>>): readonly Named[] =>
  Object.entries(titles).map(([id, name]) => ({ id, name }))

/** The options of a choice whose values are words, such as "in use". */
export const wordOptions = (words: readonly string[]): readonly Named[] =>
  words.map((word) => ({ id: word, name: capitalized(word) }))

/** Declared as methods, so that calls with a specific body type fit: the client validates bodies before it sends them. */
interface RecordCalls<Row> {
  list(options: CallOptions): Promise<ListResponse<Row>>
  create?(body: Values): Promise<unknown>
  update?(id: string, body: Values, options: CallOptions): Promise<unknown>
  delete?(id: string): Promise<unknown>
}

/** A file that creates and changes rows. */
export interface FileImport {
  readonly title: string
  /** Explains which file is expected and what it does. */
  readonly note: string
  /** The last part of the path of its import. */
  readonly kind: string
}

/** A page about a row. */
export interface RowLink {
  readonly icon: IconName
  readonly title: string
  readonly to: RouteLocationRaw
}

export type RowTask = Task & {
  readonly icon: IconName
  /** Runs when the dialog opens. */
  readonly begin?: () => Promise<unknown>
  /** Runs with one click, without a dialog. */
  readonly isImmediate?: boolean
}

/** The rows of a list page and the actions on them. Actions without a call are not shown. */
export interface Records<Row> {
  readonly title: string
  /** Singular and plural. */
  readonly nouns: readonly [string, string]
  readonly calls: RecordCalls<Row>
  /** Each call requires the permission `<resource>.<call>`. Without it, all calls are available. */
  readonly resource?: string
  /** The list is loaded again when this changes. */
  readonly updates?: Ref<unknown>
  /** Further data for the form. */
  readonly needs?: readonly Load[]
  readonly nameOf: (row: Row) => string
  /** The title of the first column; by default the noun. */
  readonly nameTitle?: string
  /** The field that sorts by name. */
  readonly nameSort?: string
  /** The text below the name. */
  readonly detailOf?: (row: Row) => string | null | undefined
  /** The place on the live plan that the name links to; null if it has no position. */
  readonly placeOf?: (row: Row) => Place | null
  readonly columns: readonly Column<Row>[]
  /** The label of the search field. */
  readonly search?: string
  readonly filters?: () => readonly Filter[]
  /** Export files by name. */
  readonly exports?: Readonly<Record<string, Download>>
  /** Requires the permission to update. */
  readonly fileImport?: FileImport
  /** The form; without a row for a new record. */
  readonly form?: (row: Row | null) => Pick<Form, 'schema' | 'specs'>
  /** The path of the records, at which the backend describes what a deletion means. */
  readonly path?: string
  /** Whether a row may be deleted; by default all. */
  readonly isDeletable?: (row: Row) => boolean
  /** Further consequences of a deletion. */
  readonly removal?: string
  /** An action on the rows of the page, beside the title; null if there is nothing to do. */
  readonly listTask?: (rows: readonly Row[]) => Task | null
  /** Pages about a row. */
  readonly links?: (row: Row) => readonly RowLink[]
  /** Further actions on a row. */
  readonly tasks?: (row: Row) => readonly RowTask[]
}
