import type { TObject } from '@sinclair/typebox'
import type { ApiError, CallOptions } from 'gatehouse-client'
import { shallowRef } from 'vue'
import {
  bodyOf,
  conflictsOf,
  enteredAtFirst,
  type FieldConflict,
  type Form,
  type FormField,
  type Values
} from '../form-fields.js'

/** The changes of another user while the form was open, and the choice for each field. */
export interface Conflict {
  readonly changedBy: string | null
  readonly current: Values
  readonly fields: readonly FieldConflict[]
  /** The fields whose own value is kept. */
  readonly own: ReadonlySet<string>
}

interface State {
  readonly schema: TObject
  readonly fields: readonly FormField[]
  readonly based: Values
  readonly entered: Values
}

/** Two users edit one record: the second save is rejected with the current record, and the user chooses. */
export const useEditConflict = (form: Form, state: () => State) => {
  const conflict = shallowRef<Conflict | null>(null)
  const options = shallowRef(optionsFor(form.stored))
  return {
    conflict,
    /** The options of the next request to save. */
    options,
    /** Whether the error is a conflict, which is shown instead of the error. */
    detect: (error: ApiError | null): boolean => {
      const changed = changedRecord(error)
      if (changed === null) return false
      const { current, changedBy } = changed
      const fields = conflictsOf(state().schema, state().fields, { ...state(), current })
      const own = new Set(fields.filter(({ isOwnChange }) => isOwnChange).map(({ name }) => name))
      conflict.value = { changedBy, current, fields, own }
      return true
    },
    /** After a save that succeeded, with its result. A form on a page is saved again, based on the new version. */
    adopt: (result: unknown): void => {
      const saved = (result as { data?: Values } | null | undefined)?.data
      if (typeof saved?.version === 'number') options.value = optionsFor(saved)
    },
    /** Applies the choices to the form. Returns the record on which it is based from now on. */
    resolve: (entered: Record<string, unknown>): Values => {
      const { schema, fields, based } = state()
      const chosen = conflict.value
      if (chosen === null) return based
      for (const { name, theirs } of chosen.fields) if (!chosen.own.has(name)) entered[name] = theirs
      options.value = optionsFor(chosen.current)
      conflict.value = null
      return bodyOf(schema, fields, enteredAtFirst(fields, chosen.current))
    }
  }
}

/** The version that a change is based on, for the query of its request. */
export const optionsFor = (record: Values | undefined): CallOptions =>
  typeof record?.version === 'number' ? { query: { version: record.version } } : {}

/** The current record in a change that was rejected because of its version; null for another error. */
export const changedRecord = (error: ApiError | null): Pick<Conflict, 'current' | 'changedBy'> | null => {
  if (error?.code !== 'RECORD_CHANGED') return null
  // The body of the demo backend, whose fields are checked here.
  const { current, changedBy } = (error.body as { error?: Values } | null)?.error ?? {}
  if (typeof current !== 'object' || current === null) return null
  return { current: current as Values, changedBy: typeof changedBy === 'string' ? changedBy : null }
}
