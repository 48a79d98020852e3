import { type Static, Type } from '@sinclair/typebox'
import { email, flag, integer, label, maybe, text, texts } from '../schemas/field-kinds.js'
import { SEVERITIES } from './alert-kinds.js'

// The notification channels of alerts and the mail server, for the web application and the backend of the demo.

export const CHANNEL_TYPES = { webhook: 'Webhook', email: 'E-mail' } as const

/** Which alerts a channel is notified about. */
export const CHANNEL_EVENTS = { new: 'New alerts', escalated: 'Escalated alerts only' } as const

export const MAIL_SECURITY = { starttls: 'STARTTLS', tls: 'TLS', none: 'None' } as const

const oneOf = (values: readonly string[], description: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description }
  )

/** Stricter than mail servers: no quotes, brackets or lists. */
const ADDRESS = /^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+$/
export const isMailAddress = (text: string): boolean => text.length <= 254 && ADDRESS.test(text)

export const MIN_SECRET = 16

const name = label('The name of the channel.')
const type = oneOf(Object.keys(CHANNEL_TYPES), 'How the channel is notified.')
const details = {
  events: Type.Optional(oneOf(Object.keys(CHANNEL_EVENTS), 'Which alerts the channel is notified about.')),
  minSeverity: Type.Optional(oneOf(SEVERITIES, 'Less severe alerts are not sent.')),
  url: maybe(text('The address to which alerts are posted as JSON.', 2048)),
  secret: maybe(
    Type.String({ minLength: MIN_SECRET, maxLength: 200, description: 'Signs the requests. It is not shown again.' })
  ),
  recipients: maybe(texts('E-mail addresses, separated by commas.', 50)),
  isActive: maybe(flag('Whether the channel is used.'))
}

export const ChannelCreateSchema = Type.Object(
  { name, type, ...details },
  { $id: 'NotificationChannelCreate', title: 'New notification channel', additionalProperties: false }
)

export const ChannelUpdateSchema = Type.Object(
  { name: Type.Optional(name), type: Type.Optional(type), ...details },
  { $id: 'NotificationChannelUpdate', title: 'Notification channel', additionalProperties: false, minProperties: 1 }
)
export type ChannelUpdate = Static<typeof ChannelUpdateSchema>

export const MailServerSchema = Type.Object(
  {
    host: maybe(
      Type.String({ maxLength: 253, pattern: '^[A-Za-z0-9.:_-]+$', description: 'Name or address of the SMTP server.' })
    ),
    port: Type.Optional(integer(1, 65_535, 'Usually 587 with STARTTLS, 465 with TLS, 25 with none.')),
    security: Type.Optional(
      oneOf(Object.keys(MAIL_SECURITY), 'Without encryption, the password can be read on the network.')
    ),
    user: maybe(text('The account at the mail server. Empty: no sign-in.', 254)),
    password: maybe(Type.String({ minLength: 1, maxLength: 500, description: 'It is not shown again.' })),
    sender: maybe(email('The address from which e-mails are sent.')),
    certificate: maybe(text('A certificate authority in PEM format that is trusted in addition.', 20_000))
  },
  { $id: 'MailServer', title: 'Mail server', additionalProperties: false, minProperties: 1 }
)
export type MailServer = Static<typeof MailServerSchema>

export const DEFAULT_MAIL_SERVER: MailServer = {
  host: null,
  port: 587,
  security: 'starttls',
  user: null,
  sender: null,
  certificate: null
}
