import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { type Command, onePositional, UsageError } from '../command.js'
import type { VerifiedTokenReport } from '../verify-token.js'

export const verifyTokenCommand: Command = {
  summary: 'say of which kind a token is, whether the servers accept it, and why not',
  usage: 'gatehouse verify-token TOKEN | -',
  run: async (args, { env, print }) => {
    const { positionals } = parseArgs({ args: [...args], options: {}, allowPositionals: true })
    const argument = onePositional(positionals, 'TOKEN')
    const token = (argument === '-' ? await text(process.stdin) : argument).trim()
    if (token === '') throw new UsageError('the token is empty')
    const [{ verifyToken }, { TOKEN_REASONS }] = await Promise.all([
      import('../verify-token.js'),
      import('../token-reasons.js')
    ])
    const report = await verifyToken(token, env)
    for (const { kind, reason } of report.verdicts)
      print(`${kind}: ${reason === null ? 'valid' : `rejected, ${reason}: ${TOKEN_REASONS[reason]}`}`)
    for (const line of detailsOf(report, Date.now())) print(line)
    return report.verdicts.some(({ reason }) => reason === null) ? 0 : 1
  }
}

const detailsOf = ({ claims, msPerUnit, isSigned }: VerifiedTokenReport, nowMs: number): string[] => {
  if (claims === null) return []
  const times = TIMES.flatMap(({ name, label }) => {
    const value = claims[name]
    return typeof value === 'number' ? [`${label}: ${timeText(value * msPerUnit, nowMs)}`] : []
  })
  const title = isSigned ? 'claims' : 'claims (not verified, because no signature matches)'
  return [...times, `${title}: ${JSON.stringify(claims, null, 2)}`]
}

const TIMES = [
  { name: 'iat', label: 'issued' },
  { name: 'nbf', label: 'not before' },
  { name: 'exp', label: 'expires' },
  { name: 'expire_at', label: 'connection ends' }
] as const

/** The last time that JavaScript can show. */
const MAX_TIME_MS = 8.64e15

const timeText = (ms: number, nowMs: number): string => {
  if (!(Math.abs(ms) <= MAX_TIME_MS)) return 'not a time'
  const seconds = Math.round((ms - nowMs) / 1000)
  const distance = durationText(Math.abs(seconds))
  return `${new Date(ms).toISOString()} (${seconds > 0 ? `in ${distance}` : `${distance} ago`})`
}

const UNITS = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min']
] as const

const durationText = (seconds: number): string => {
  const [size, name] = UNITS.find(([size]) => seconds >= size) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${name}`
}
