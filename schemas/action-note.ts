import { type Static, Type } from '@sinclair/typebox'
import { MAX_PROPERTIES, maybe, text } from './field-kinds.js'

export const ActionNoteSchema = Type.Object(
  {
    reason: maybe(text('The reason.', 500)),
    note: maybe(text('Additional notes.', 2000))
  },
  {
    $id: 'ActionNote',
    title: 'Note on an action',
    description: 'The optional body of actions and deletions: a reason.',
    examples: [{ reason: 'Left the company', note: 'Badge returned on Monday.' }, {}],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type ActionNote = Static<typeof ActionNoteSchema>
