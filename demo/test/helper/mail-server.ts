import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import type { Teardown } from '../../../test/helper/child.js'
import { LOOPBACK } from '../../../test/helper/free-port.js'

export interface ReceivedMail {
  readonly user: string
  readonly isEncrypted: boolean
  readonly from: string
  readonly to: readonly string[]
  /** Header and text. */
  readonly source: string
}

export interface TestMailServer {
  readonly port: number
  readonly mails: ReceivedMail[]
  close(): Promise<void>
}

/** The only account of the server. */
export const MAIL_ACCOUNT = { user: 'alerts', password: 'a-mail-password' }

const addressOf = (address: unknown): string =>
  typeof address === 'object' && address !== null && 'address' in address ? String(address.address) : ''

/** A real SMTP server that accepts mails, except for recipients with `nobody` in their address. */
export const startMailServer = async (
  t: Teardown,
  { port = 0, ...options }: SMTPServerOptions & { readonly port?: number } = {}
): Promise<TestMailServer> => {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    onAuth: ({ username, password }, _session, callback) =>
      username === MAIL_ACCOUNT.user && password === MAIL_ACCOUNT.password
        ? callback(null, { user: username })
        : callback(new Error('wrong password')),
    onRcptTo: ({ address }, _session, callback) =>
      callback(address.includes('nobody') ? Object.assign(new Error('no such user'), { responseCode: 550 }) : null),
    onData: (stream, { user, secure, envelope }, callback) => {
      void text(stream).then((source) => {
        const to = envelope.rcptTo.map(addressOf)
        mails.push({
          user: String(user ?? ''),
          isEncrypted: secure,
          from: addressOf(envelope.mailFrom),
          to,
          source
        })
        callback(null)
      })
    },
    ...options
  })
  // A client that rejects the certificate closes the connection.
  server.on('error', () => undefined)
  await once(server.listen(port, LOOPBACK), 'listening')
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
  t.teardown(close)
  const address = server.server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0, mails, close }
}
