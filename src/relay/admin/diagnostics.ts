import { wallTimeOf } from '../core/clocks.js'
import type { Relay } from '../core/relay.js'
import type { RecentCount, RecentRejectionKind, Rejections } from '../transport/rejections.js'
import type { Check, CheckState } from './contract.js'

/** What one node has seen of what usually goes wrong. Times are milliseconds since 1970. */
export interface Diagnostics {
  readonly startedAt: number
  readonly clients: number
  readonly lastFloor: number | null
  readonly lastGlobal: number | null
  readonly lastPublish: number | null
  /** Null where the engine is within the relay. */
  readonly isEngineConnected: boolean | null
  readonly rejections: Readonly<Record<RecentRejectionKind, readonly RecentCount[]>>
}

export const FLOOR = 'floor'
export const GLOBAL = 'global:all'

export interface DiagnosticsDependencies {
  readonly relay: Relay
  readonly rejections: Rejections
  /** On the monotonic clock. */
  readonly startedAt: number
  readonly isEngineConnected: () => boolean | null
}

export const nodeDiagnostics = ({
  relay,
  rejections,
  startedAt,
  isEngineConnected
}: DiagnosticsDependencies): Diagnostics => {
  const { activity, clients, clocks } = relay
  const wallTime = (monotonicMs: number | null): number | null =>
    monotonicMs === null ? null : wallTimeOf(monotonicMs, clocks)
  return {
    startedAt: wallTimeOf(startedAt, clocks),
    clients: clients.length,
    lastFloor: wallTime(activity.lastIn(FLOOR)),
    lastGlobal: wallTime(activity.channels.get(GLOBAL)?.lastAt ?? null),
    lastPublish: wallTime(activity.last),
    isEngineConnected: isEngineConnected(),
    rejections: {
      origin: rejections.recent('origin'),
      token: rejections.recent('token'),
      key: rejections.recent('key'),
      upgrade: rejections.recent('upgrade')
    }
  }
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** Of all nodes together. */
interface Picture {
  readonly nowMs: number
  /** When the oldest node started. */
  readonly startedAt: number
  readonly clients: number
  readonly lastFloor: number | null
  readonly lastGlobal: number | null
  readonly lastPublish: number | null
  readonly engines: readonly (boolean | null)[]
  readonly rejections: Readonly<Record<RecentRejectionKind, readonly RecentCount[]>>
}

type Verdict = readonly [state: CheckState, sentence: string, details?: readonly RecentCount[]]

/** The order in which an operator would ask. Each is a line of the table of symptoms. */
const CHECKS: readonly {
  readonly id: string
  readonly title: string
  readonly verdict: (picture: Picture) => Verdict
}[] = [
  { id: 'floors', title: 'Positions of floors', verdict: (picture) => floors(picture) },
  { id: 'global', title: GLOBAL, verdict: (picture) => globalAll(picture) },
  { id: 'clients', title: 'Connected clients', verdict: (picture) => clients(picture) },
  { id: 'origins', title: 'Allowed origins', verdict: (picture) => origins(picture) },
  { id: 'upgrade', title: 'WebSocket upgrade', verdict: (picture) => upgrade(picture) },
  { id: 'tokens', title: 'Relay tokens', verdict: (picture) => tokens(picture) },
  { id: 'key', title: 'Publish key', verdict: (picture) => key(picture) },
  { id: 'engine', title: 'Engine', verdict: (picture) => engine(picture) }
]

export const checksOf = (diagnostics: readonly Diagnostics[], nowMs: number): readonly Check[] => {
  const picture = pictureOf(diagnostics, nowMs)
  return CHECKS.map(({ id, title, verdict }) => {
    const [state, sentence, details = []] = verdict(picture)
    return { id, title, state, sentence, details: details.map(({ what, count }) => ({ what, count })) }
  })
}

const floors = ({ lastFloor, startedAt, nowMs }: Picture): Verdict => {
  if (lastFloor === null) {
    const state = nowMs - startedAt < MINUTE_MS ? 'amber' : 'red'
    return [state, 'Nothing has been published to any floor yet: check that the backend publishes to floor:<floorId>.']
  }
  const silent = nowMs - lastFloor
  if (silent < MINUTE_MS) return ['green', 'Floors get positions.']
  const sentence = `The last positions of any floor came ${ago(silent)}: check the publisher and its publish address.`
  return [silent < 5 * MINUTE_MS ? 'amber' : 'red', sentence]
}

/** It speaks only when new devices are about, so silence means less. */
const globalAll = ({ lastGlobal, startedAt, nowMs }: Picture): Verdict => {
  const silent = nowMs - (lastGlobal ?? startedAt)
  const state = silent < HOUR_MS ? 'amber' : 'red'
  if (lastGlobal === null) return [state, `Nothing has been published to ${GLOBAL} yet: it speaks when devices appear.`]
  if (silent < 15 * MINUTE_MS) return ['green', `${GLOBAL} is alive.`]
  return [state, `${GLOBAL} was last heard ${ago(silent)}: check the backend's ambient batches.`]
}

const clients = ({ clients }: Picture): Verdict =>
  clients > 0
    ? ['green', 'Clients are connected.']
    : ['amber', 'Nobody is connected: check the allowed origins, and the address that negotiate hands out.']

const origins = ({ rejections: { origin }, clients }: Picture): Verdict => {
  if (origin.length === 0) return ['green', 'No page was refused for its origin.']
  const sentence = `Pages of ${origin[0]?.what || 'no origin'} ${times(origin)} were refused: add the origin to RELAY_ALLOWED_ORIGINS if it is yours.`
  return [clients === 0 ? 'red' : 'amber', sentence, origin]
}

const upgrade = ({ rejections: { upgrade }, clients }: Picture): Verdict => {
  if (upgrade.length === 0) return ['green', 'WebSockets are upgraded.']
  const sentence =
    'Requests for a WebSocket came without an upgrade: the proxy in front must pass on Upgrade and Connection.'
  return [clients === 0 ? 'red' : 'amber', sentence, upgrade]
}

const TOKEN_ADVICE: Readonly<Record<string, string>> = {
  'bad-signature': 'the backend signs with another REALTIME_HMAC_SECRET than the relay has',
  expired: 'clients come with old tokens; check negotiate and the clocks',
  missing: 'clients come without one; check the answer of negotiate',
  'issued-in-future': "the backend's clock is ahead",
  'not-yet-valid': "the backend's clock is ahead"
}

const tokens = ({ rejections: { token }, clients }: Picture): Verdict => {
  const [first] = token
  if (first === undefined) return ['green', 'Tokens are good.']
  const advice = TOKEN_ADVICE[first.what] ?? 'check what negotiate hands out'
  return [clients === 0 ? 'red' : 'amber', `Tokens were refused ${times(token)} (${first.what}): ${advice}.`, token]
}

const key = ({ rejections: { key }, lastPublish }: Picture): Verdict => {
  if (key.length === 0) return ['green', 'No publisher was refused.']
  const isSilent = lastPublish === null || key.some(({ lastAt }) => lastAt > lastPublish)
  const sentence = `A wrong publish key came ${times(key)}: REALTIME_API_KEY of the backend and of the relay must be equal.`
  return [isSilent ? 'red' : 'amber', sentence, key]
}

const engine = ({ engines }: Picture): Verdict => {
  const lost = engines.filter((isConnected) => isConnected === false).length
  if (lost > 0) return ['red', `${lost} of ${engines.length} nodes cannot reach Redis: check REDIS_URL and the server.`]
  return ['green', engines.includes(true) ? 'Redis is connected.' : 'The engine is within the relay.']
}

const times = (counts: readonly RecentCount[]): string => {
  const count = counts.reduce((sum, each) => sum + each.count, 0)
  return count === 1 ? 'once' : `${count} times`
}

const ago = (ms: number): string => {
  if (ms < MINUTE_MS) return 'seconds ago'
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min ago`
  return `${Math.floor(ms / HOUR_MS)} h ago`
}

const pictureOf = (diagnostics: readonly Diagnostics[], nowMs: number): Picture => ({
  nowMs,
  startedAt: Math.min(nowMs, ...diagnostics.map(({ startedAt }) => startedAt)),
  clients: diagnostics.reduce((sum, { clients }) => sum + clients, 0),
  lastFloor: newest(diagnostics.map(({ lastFloor }) => lastFloor)),
  lastGlobal: newest(diagnostics.map(({ lastGlobal }) => lastGlobal)),
  lastPublish: newest(diagnostics.map(({ lastPublish }) => lastPublish)),
  engines: diagnostics.map(({ isEngineConnected }) => isEngineConnected),
  rejections: {
    origin: merged(diagnostics, 'origin'),
    token: merged(diagnostics, 'token'),
    key: merged(diagnostics, 'key'),
    upgrade: merged(diagnostics, 'upgrade')
  }
})

const newest = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.max(...known)
}

const merged = (diagnostics: readonly Diagnostics[], kind: RecentRejectionKind): readonly RecentCount[] => {
  const byWhat = new Map<string, RecentCount>()
  for (const { what, count, lastAt } of diagnostics.flatMap(({ rejections }) => rejections[kind])) {
    const known = byWhat.get(what)
    byWhat.set(what, {
      what,
      count: count + (known?.count ?? 0),
      lastAt: Math.max(lastAt, known?.lastAt ?? 0)
    })
  }
  return [...byWhat.values()].sort((left, right) => right.count - left.count)
}
