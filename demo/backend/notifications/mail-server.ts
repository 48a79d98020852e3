import { DEFAULT_MAIL_SERVER } from '../../notification-channels.js'
import { fieldChanges } from '../audit/changes.js'
import { invalid } from '../errors.js'
import { checkSettingVersion } from '../record-version.js'
import type { Run } from '../route.js'
import { changeSetting, readSetting, readVersionedSetting } from '../settings.js'
import type { World } from '../world.js'
import { retryNow } from './outbox.js'
import type { MailSettings } from './send-mail.js'

/** With the password. Only for sending. */
export const mailSettings = async (world: Pick<World, 'database'>): Promise<MailSettings> => ({
  ...DEFAULT_MAIL_SERVER,
  ...(await readSetting(world, 'mailServer'))
})

/** Without the password, which is never returned. */
export const readMailServer: Run = async (call) => {
  const { password, ...server } = { ...(await mailSettings(call)), ...(await readVersionedSetting(call, 'mailServer')) }
  return { ...server, hasPassword: typeof password === 'string' }
}

/** A changed one of these may send the password to somebody else. */
const CONNECTION = ['host', 'port', 'security', 'certificate'] as const

export const changeMailServer: Run = async (call) => {
  const { body, subjects, changes } = call
  await checkSettingVersion(call, 'mailServer', readMailServer)
  const stored = await mailSettings(call)
  const server: MailSettings = { ...stored, ...body }
  const isMoved = CONNECTION.some((field) => server[field] !== stored[field])
  if (isMoved && stored.password && server.user && body.password === undefined)
    throw invalid([{ path: '/password', message: 'must be entered again, because the connection has changed' }])
  if (server.user && !server.password) throw invalid([{ path: '/password', message: 'is required to sign in' }])
  await changeSetting(call, 'mailServer', { ...body, ...(!server.user && { password: null }) })
  await retryNow(call, null)
  subjects.push('mail server')
  changes.push(...fieldChanges(Object.keys(body), { ...stored }, body, 'mailServer.'))
  return readMailServer(call)
}
