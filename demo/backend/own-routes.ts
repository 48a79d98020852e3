import { Type } from '@sinclair/typebox'
import { ActionNoteSchema } from '../../schemas/action-note.js'
import { ids } from '../../schemas/ids.js'
import { action, defineRoutes, del, patch, post, upload } from '../../src/gateway/routes/tables/declare.js'
import { UploadFormSchema } from '../../src/gateway/routes/tables/upload-form.js'
import { InstructionsSchema } from '../emergency-types.js'
import { PrivacySettingsSchema } from '../privacy-settings.js'
import { CheckInSchema, CheckOutSchema, VisitCreateSchema, VisitUpdateSchema } from '../visit-schema.js'

/** Mutations that are not in the gateway's tables. The gateway forwards them unchecked; the backend checks their bodies. */
export const ownRoutes = defineRoutes({
  domain: 'demo',
  about: 'Alerts, emergency instructions, privacy, visits and imports',
  rows: [
    post(
      '/api/alerts/acknowledge',
      'Acknowledge alerts',
      Type.Object({ ids: ids('The alerts.') }, { $id: 'AlertAcknowledgement', additionalProperties: false })
    ),
    patch('/api/emergency/instructions/:id', 'Change the emergency instructions of a building', InstructionsSchema),
    patch('/api/mgmt/settings/privacy', 'Change how long personal data is stored', PrivacySettingsSchema),
    ...['personnel', 'assets', 'visits'].flatMap((kind) => [
      upload(`/api/imports/${kind}/preview`, `Preview an import of ${kind} from CSV`, UploadFormSchema),
      upload(`/api/imports/${kind}`, `Import ${kind} from CSV after a preview`, UploadFormSchema)
    ]),
    post('/api/visits', 'Add a visit', VisitCreateSchema),
    patch('/api/visits/:id', 'Change a visit', VisitUpdateSchema),
    del('/api/visits/:id', 'Delete a visit', ActionNoteSchema),
    post('/api/visits/:id/check-in', 'Check a visitor in with a transmitter', CheckInSchema),
    action('/api/visits/:id/check-out', 'Check a visitor out, which returns the transmitter', CheckOutSchema)
  ]
})
