import { type Static, Type } from '@sinclair/typebox'
import { MAX_PROPERTIES, maybe, text } from './field-kinds.js'

export const ActionNoteSchema = Type.Object(
  {
    reason: maybe(text('Why this is done, in a few words.', 500)),
    note: maybe(text('Anything else to remember about it.', 2000))
  },
  {
    $id: 'ActionNote',
    title: 'Note on an action',
    description: 'The body of actions and deletions that need none: it may say why.',
    examples: [{ reason: 'Left the company', note: 'Badge returned on Monday.' }, {}],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type ActionNote = Static<typeof ActionNoteSchema>
