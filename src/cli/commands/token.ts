import { parseArgs } from 'node:util'
import { type Command, UsageError } from '../command.js'

const OPTIONS = {
  user: { type: 'string' },
  ttl: { type: 'string', default: '1h' },
  info: { type: 'string' },
  channel: { type: 'string', multiple: true },
  subscription: { type: 'string' },
  app: { type: 'boolean' },
  email: { type: 'string' },
  role: { type: 'string' },
  permission: { type: 'string', multiple: true }
} as const

type Option = keyof typeof OPTIONS

/** The options of each kind of token, in addition to `--user` and `--ttl`. */
const KINDS = {
  connection: ['channel', 'info'],
  subscription: ['subscription', 'info'],
  app: ['app', 'email', 'role', 'permission']
} as const satisfies Record<string, readonly Option[]>

export const tokenCommand: Command = {
  summary: 'print a signed connection token, subscription token or app token',
  usage:
    'gatehouse token --user ID [--ttl 1h] ([--channel NAME]... [--info JSON] | --subscription CHANNEL [--info JSON] | --app [--email ADDRESS] [--role ROLE] [--permission NAME]...)',
  run: async (args, { env, print }) => {
    const { values } = parseArgs({ args: [...args], options: OPTIONS })
    const { user, ttl, info, channel, subscription, app, email, role, permission } = values
    const kind = app ? 'app' : subscription === undefined ? 'connection' : 'subscription'
    const allowed: readonly string[] = ['user', 'ttl', ...KINDS[kind]]
    const other = Object.keys(values).find((name) => !allowed.includes(name))
    if (other !== undefined) throw new UsageError(`--${other} is not an option of ${kind} tokens`)
    if (user === undefined) throw new UsageError('--user is required')
    if (subscription === '') throw new UsageError('--subscription must not be empty')
    const { appToken, relayToken } = await import('../token.js')
    const claims =
      kind === 'app'
        ? { email, role, permissions: permission }
        : { channel: subscription, channels: channel, info: jsonOf(info) }
    print((kind === 'app' ? appToken : relayToken)({ user, ttl, claims: withoutUndefined(claims) }, env))
    return 0
  }
}

const jsonOf = (text: string | undefined): unknown => {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    throw new UsageError('--info must be JSON')
  }
}

const withoutUndefined = (claims: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
