import type { TObject } from '@sinclair/typebox'
import type { CallOptions } from 'gatehouse-client'
import type { Download } from 'gatehouse-client/buildings'
import type { RouteLocationRaw } from 'vue-router'
import { capitalized } from '../../src/ui/format.js'
import type { IconName } from '../../src/ui/icons.js'
import type { LookupName } from './composables/useLookups.js'
import type { FieldSpec, Form, Values } from './form-fields.js'
import type { ListResponse, Named } from './types.js'

export interface Column<Row> {
  readonly title: string
  /** With `lookup`, the id of one of its options, whose name is shown. */
  text(row: Row): string | number | null | undefined
  readonly lookup?: LookupName
  /** The field that the backend sorts by. Without it the column cannot be sorted. */
  readonly sort?: string
  /** Numbers and times are first sorted in descending order. */
  readonly isNumber?: boolean
  /** Shows the text as a chip, with the colour of `STATE_TONES`. */
  readonly isState?: boolean
}

/** A query parameter of the list. */
interface Filter {
  readonly name: string
  readonly label: string
  readonly options: readonly Named[] | LookupName
}

/** A field with the choices of a lookup; `isOptional` adds the choice of none. */
export interface ResourceField extends Omit<FieldSpec, 'options'> {
  readonly options?: readonly Named[] | LookupName
  readonly isOptional?: boolean
  /** Only in the form of a new record. */
  readonly isNewOnly?: boolean
}

/** An action on a row, with a form in a dialog. */
export interface RowTask extends Form {
  readonly icon: IconName
  readonly title: string
  /** The message after success. The result is that of `save`. */
  readonly done: (body: Values, result: unknown) => string
}

/** Declared as methods, so that the calls of the client fit, which validate their bodies before they send them. */
interface Calls<Row> {
  list(options: CallOptions): Promise<ListResponse<Row>>
  create?(body: Values): Promise<unknown>
  update?(id: string, body: Values, options: CallOptions): Promise<unknown>
  delete?(id: string): Promise<unknown>
}

/** The rows of a list and the actions on them. Actions without a call are not shown. */
export interface Resource<Row extends { readonly id: string }> {
  /** Singular and plural. */
  readonly nouns: readonly [string, string]
  readonly calls: Calls<Row>
  /** Each call requires `<permission>.<call>`. A complete permission is required for all changes. */
  readonly permission: string
  name(row: Row): string
  /** The title of the first column; by default the noun. */
  readonly nameTitle?: string
  /** The field by which names are sorted; by default `name`. */
  readonly nameSort?: string
  /** The text below the name. */
  detail?(row: Row): string | null | undefined
  /** The target of the link of the name; null if it is a text. */
  to?(row: Row, may: (permission: string) => boolean): RouteLocationRaw | null
  readonly columns: readonly Column<Row>[]
  readonly filters?: readonly Filter[]
  /** Export files by name. */
  readonly exports?: Readonly<Record<string, Download>>
  readonly schema?: TObject
  readonly fields?: readonly (string | ResourceField)[]
  /** The consequences of a deletion. */
  readonly removal?: string
  /** Further actions on a row, for a user with these permissions. */
  tasks?(row: Row, may: (permission: string) => boolean): readonly RowTask[]
  /** The list is loaded again when this changes. */
  updates?(): unknown
}

export const define = <Row extends { readonly id: string }>(resource: Resource<Row>): Resource<Row> => resource

type Text<Row> = Column<Row>['text']
export const shown = <Row>(title: string, text: Text<Row>, sort?: string): Column<Row> => ({
  title,
  text,
  ...(sort && { sort })
})
export const figure = <Row>(title: string, text: Text<Row>, sort: string): Column<Row> => ({
  ...shown(title, text, sort),
  isNumber: true
})
export const state = <Row>(title: string, text: Text<Row>, sort?: string): Column<Row> => ({
  ...shown(title, text, sort),
  isState: true
})

/** The colours of states, in every list alike. Other states are grey. */
export const STATE_TONES: Readonly<Record<string, 'good' | 'warning' | 'danger'>> = {
  'On site': 'good',
  'In use': 'good',
  Online: 'good',
  Offline: 'danger',
  Calibrated: 'good',
  'Not calibrated': 'warning',
  Active: 'good',
  Locked: 'danger',
  Critical: 'danger',
  Low: 'danger',
  Warning: 'warning',
  Good: 'good',
  Done: 'good',
  Failed: 'warning',
  Denied: 'danger',
  Drill: 'warning',
  Emergency: 'danger'
}

export const titled = (titles: Readonly<Record<string, string>>): readonly Named[] =>
  Object.entries(titles).map(([id, name]) => ({ id, name }))
export const words = (...values: readonly string[]): readonly Named[] =>
  values.map((value) => ({ id: value, name: capitalized(value) }))
