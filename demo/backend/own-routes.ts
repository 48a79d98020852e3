import { Type } from '@sinclair/typebox'
import { ActionNoteSchema } from '../../schemas/action-note.js'
import { id, ids } from '../../schemas/ids.js'
import { action, defineRoutes, del, patch, post, put, upload } from '../../src/gateway/routes/tables/declare.js'
import { UploadFormSchema } from '../../src/gateway/routes/tables/upload-form.js'
import { SeveritySettingsSchema } from '../alert-kinds.js'
import { InstructionsSchema } from '../emergency-types.js'
import { ChannelCreateSchema, ChannelUpdateSchema, MailServerSchema } from '../notification-channels.js'
import { PrivacySettingsSchema } from '../privacy-settings.js'
import { CheckInSchema, CheckOutSchema, VisitCreateSchema, VisitUpdateSchema } from '../visit-schema.js'

const nobody = (description: string) => Type.Union([id(description), Type.Null()])

const AssignmentSchema = Type.Object(
  {
    ids: ids('The alerts.', 1),
    userId: nobody('The user who takes care of the alerts; null for nobody.'),
    expected: Type.Optional(
      nobody('The assigned user as the caller knows it. If it has changed, the request is rejected.')
    )
  },
  { $id: 'AlertAssignment', additionalProperties: false }
)

/** Write requests that are not in the gateway's tables. The gateway forwards them unchecked; the backend checks their bodies. */
export const ownRoutes = defineRoutes({
  domain: 'demo',
  about: 'Alerts and their notifications, emergency instructions, privacy, visits and imports',
  rows: [
    post(
      '/api/alerts/acknowledge',
      'Acknowledge alerts',
      Type.Object({ ids: ids('The alerts.') }, { $id: 'AlertAcknowledgement', additionalProperties: false })
    ),
    post('/api/alerts/assign', 'Assign alerts to a user', AssignmentSchema),
    patch('/api/alerts/severities', 'Change the severities and their escalation', SeveritySettingsSchema),
    post('/api/notifications/channels', 'Create a notification channel', ChannelCreateSchema),
    put('/api/notifications/channels/:id', 'Change a notification channel', ChannelUpdateSchema),
    del('/api/notifications/channels/:id', 'Delete a notification channel', ActionNoteSchema),
    action('/api/notifications/channels/:id/test', 'Send a test notification', ActionNoteSchema),
    patch('/api/notifications/mail-server', 'Change the mail server', MailServerSchema),
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
