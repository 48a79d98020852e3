import { Type } from '@sinclair/typebox'

/** The form of an upload, as documented. The gateway streams it unread, so the backend validates its parts. */
export const UploadFormSchema = Type.Object(
  {
    file: Type.Optional(Type.String({ contentMediaType: 'application/octet-stream', description: 'The file.' }))
  },
  { additionalProperties: true }
)
