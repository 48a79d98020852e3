import type { ExpectedTraffic } from '../config/expected-traffic.js'
import { wallTimeOf } from '../core/clocks.js'
import { type SilentChannels, silentChannels } from '../core/fan-out/channel-silence.js'
import type { OpenChannel } from '../core/fan-out/hub.js'
import type { Relay } from '../core/relay.js'
import type { ProxyStatus } from '../proxies/health.js'
import type { RecentCount, Rejections } from '../transport/rejections.js'
import type { Check, CheckState } from './contract.js'
import { checkProxies, mergeStatuses } from './proxy-check.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Limits the list of a check. */
const MAX_SILENT_CHANNELS = 20

type RecentRejections = Readonly<Record<'origin' | 'token' | 'api_key' | 'upgrade' | 'limit', readonly RecentCount[]>>

/** The observations of one node behind the checks. Times are milliseconds since 1970. */
export interface Diagnostics {
  readonly startedAt: number
  readonly clients: number
  readonly lastPublish: number | null
  /** The last publication of each expected traffic, by its id. */
  readonly lastExpected: Readonly<Record<string, number | null>>
  /** Null for the memory engine. */
  readonly isEngineConnected: boolean | null
  readonly areInvalidationsKnown: boolean
  readonly rejections: RecentRejections
  /** Channels with subscribers and no publication for a minute. */
  readonly silentChannels: SilentChannels
  /** Event proxies. */
  readonly proxies: readonly ProxyStatus[]
}

export interface DiagnosticsDependencies {
  readonly relay: Relay
  readonly rejections: Rejections
  readonly expectedTraffic: () => readonly ExpectedTraffic[]
  /** On the monotonic clock. */
  readonly startedAt: number
  readonly isEngineConnected: () => boolean | null
  readonly proxies: () => readonly ProxyStatus[]
}

export const nodeDiagnostics = ({
  relay,
  rejections,
  expectedTraffic,
  startedAt,
  isEngineConnected,
  proxies
}: DiagnosticsDependencies): Diagnostics => {
  const { activity, clients, clocks } = relay
  const expected = expectedTraffic()
  const wallTime = (monotonicMs: number | null): number | null =>
    monotonicMs === null ? null : wallTimeOf(monotonicMs, clocks)
  const lastFrom = ({ namespace, channel }: ExpectedTraffic): number | null =>
    channel === null ? activity.lastIn(namespace) : (activity.channels.get(channel)?.lastAt ?? null)
  return {
    startedAt: wallTimeOf(startedAt, clocks),
    clients: clients.length,
    lastPublish: wallTime(activity.last),
    lastExpected: Object.fromEntries(expected.map((each) => [each.id, wallTime(lastFrom(each))])),
    isEngineConnected: isEngineConnected(),
    areInvalidationsKnown: relay.areInvalidationsKnown,
    rejections: {
      origin: rejections.recent('origin'),
      token: rejections.recent('token'),
      api_key: rejections.recent('api_key'),
      upgrade: rejections.recent('upgrade'),
      limit: rejections.recent('limit')
    },
    silentChannels: silentChannels(
      withoutExpected(relay.openChannels, expected),
      clocks.monotonicMs(),
      MINUTE_MS,
      MAX_SILENT_CHANNELS
    ),
    proxies: proxies()
  }
}

/** Channels with a check of their own are not checked twice. */
const withoutExpected = function* (
  channels: Relay['openChannels'],
  expectedTraffic: readonly ExpectedTraffic[]
): Iterable<OpenChannel> {
  const expected = new Set(expectedTraffic.map(({ channel }) => channel))
  for (const channel of channels.values()) if (!expected.has(channel.name)) yield channel
}

/** The observations of all nodes together. */
interface ClusterDiagnostics extends Omit<Diagnostics, 'isEngineConnected' | 'areInvalidationsKnown'> {
  readonly nowMs: number
  /** Number of nodes that cannot read the revoked tokens. */
  readonly withoutInvalidations: number
  readonly engines: readonly (boolean | null)[]
}

type CheckResult = readonly [state: CheckState, sentence: string, details?: Check['details']]

interface CheckDefinition {
  readonly id: string
  readonly title: string
  readonly run: (diagnostics: ClusterDiagnostics) => CheckResult
}

/** The checks of the operators' page, in the order in which an operator would look for a problem. */
export const runChecks = (
  nodes: readonly Diagnostics[],
  expectedTraffic: readonly ExpectedTraffic[],
  nowMs: number
): readonly Check[] => {
  const diagnostics = merge(nodes, expectedTraffic, nowMs)
  return [...expectedTraffic.map(trafficCheck), ...CHECKS].map(({ id, title, run }) => {
    const [state, sentence, details = []] = run(diagnostics)
    return { id, title, state, sentence, details: details.map(({ label, count }) => ({ label, count })) }
  })
}

const trafficCheck = (expected: ExpectedTraffic): CheckDefinition => ({
  id: expected.id,
  title: expected.title,
  run: ({ lastExpected, startedAt, nowMs }) => {
    const { greenMs, redMs, redAfterStartMs, texts } = expected
    const last = lastExpected[expected.id] ?? null
    if (last === null) return [nowMs - startedAt < redAfterStartMs ? 'amber' : 'red', texts.never]
    const silentMs = nowMs - last
    if (silentMs < greenMs) return ['green', texts.active]
    return [silentMs < redMs ? 'amber' : 'red', texts.silent(ago(silentMs))]
  }
})

const TOKEN_ADVICE: Readonly<Record<string, string>> = {
  'bad-signature': 'the backend signs with a different REALTIME_HMAC_SECRET than the relay has',
  expired: 'clients use old tokens; check negotiate and the clocks',
  missing: 'clients connect without a token; check the response of negotiate',
  'issued-in-future': "the backend's clock is ahead",
  'not-yet-valid': "the backend's clock is ahead",
  revoked: 'users were signed out; their clients get a new token from negotiate if the backend allows it'
}

const CHECKS: readonly CheckDefinition[] = [
  {
    id: 'clients',
    title: 'Connected clients',
    run: ({ clients }) =>
      clients > 0
        ? ['green', 'Clients are connected.']
        : ['amber', 'No client is connected: check the allowed origins and the URL that negotiate returns.']
  },
  {
    id: 'origins',
    title: 'Allowed origins',
    run: ({ rejections: { origin }, clients }) => {
      if (origin.length === 0) return ['green', 'No origin was rejected.']
      const name = origin[0]?.label || 'no origin'
      const sentence = `Requests from ${name} were rejected ${times(origin)}: add the origin to RELAY_ALLOWED_ORIGINS if it is yours.`
      return [rejectionState(clients), sentence, origin]
    }
  },
  {
    id: 'upgrade',
    title: 'WebSocket upgrade',
    run: ({ rejections: { upgrade }, clients }) => {
      if (upgrade.length === 0) return ['green', 'WebSocket upgrades succeed.']
      const sentence =
        'WebSocket requests arrived without an upgrade: the proxy must forward the Upgrade and Connection headers.'
      return [rejectionState(clients), sentence, upgrade]
    }
  },
  {
    id: 'tokens',
    title: 'Relay tokens',
    run: ({ rejections: { token }, clients }) => {
      const [first] = token
      if (first === undefined) return ['green', 'No token was rejected.']
      const advice = TOKEN_ADVICE[first.label] ?? 'check the tokens that negotiate returns'
      return [rejectionState(clients), `Tokens were rejected ${times(token)} (${first.label}): ${advice}.`, token]
    }
  },
  {
    id: 'revoked',
    title: 'Revoked tokens',
    run: ({ withoutInvalidations, engines }) => {
      if (withoutInvalidations === 0) return ['green', 'All nodes know which tokens are revoked.']
      const nodes = `${withoutInvalidations} of ${engines.length} nodes`
      return ['red', `${nodes} cannot read the revoked tokens, and reject every token until they can: check the log.`]
    }
  },
  {
    id: 'key',
    title: 'Publish key',
    run: ({ rejections: { api_key: key }, lastPublish }) => {
      if (key.length === 0) return ['green', 'No API key was rejected.']
      const hasPublishedSince = lastPublish !== null && key.every(({ lastAt }) => lastAt <= lastPublish)
      const sentence = `A wrong API key was used ${times(key)}: the backend and the relay must have the same REALTIME_API_KEY.`
      return [hasPublishedSince ? 'amber' : 'red', sentence, key]
    }
  },
  {
    id: 'limits',
    title: 'Limits',
    run: ({ rejections: { limit } }) => {
      if (limit.length === 0) return ['green', 'No limit rejected a client.']
      return ['amber', `Limits rejected clients ${times(limit)}: check these clients, or raise the limit.`, limit]
    }
  },
  {
    id: 'silent',
    title: 'Silent channels',
    run: ({ silentChannels: { count, longest } }) => {
      if (count === 0) return ['green', 'Every channel with subscribers received a publication in the last minute.']
      const channels = count === 1 ? '1 channel has' : `${count} channels have`
      return [
        'amber',
        `${channels} subscribers, but no publication for a minute or longer: check the publisher if they should receive some. The list shows minutes.`,
        longest.map(({ name, silentMs }) => ({ label: name, count: Math.floor(silentMs / MINUTE_MS) }))
      ]
    }
  },
  {
    id: 'proxies',
    title: 'Event proxies',
    run: ({ proxies, nowMs }) => checkProxies(proxies, nowMs)
  },
  {
    id: 'engine',
    title: 'Engine',
    run: ({ engines }) => {
      const lost = engines.filter((isConnected) => isConnected === false).length
      if (lost > 0)
        return ['red', `${lost} of ${engines.length} nodes cannot reach Redis: check REDIS_URL and the server.`]
      return ['green', engines.includes(true) ? 'Redis is connected.' : 'The memory engine is used.']
    }
  }
]

/** Rejections are less urgent while other clients are connected. */
const rejectionState = (clients: number): CheckState => (clients === 0 ? 'red' : 'amber')

const times = (counts: readonly RecentCount[]): string => {
  const count = counts.reduce((sum, each) => sum + each.count, 0)
  return count === 1 ? 'once' : `${count} times`
}

const ago = (ms: number): string => {
  if (ms < MINUTE_MS) return 'seconds ago'
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min ago`
  return `${Math.floor(ms / HOUR_MS)} h ago`
}

const merge = (
  nodes: readonly Diagnostics[],
  expectedTraffic: readonly ExpectedTraffic[],
  nowMs: number
): ClusterDiagnostics => ({
  nowMs,
  startedAt: Math.min(nowMs, ...nodes.map(({ startedAt }) => startedAt)),
  clients: nodes.reduce((sum, { clients }) => sum + clients, 0),
  lastPublish: latest(nodes.map(({ lastPublish }) => lastPublish)),
  lastExpected: Object.fromEntries(
    expectedTraffic.map(({ id }) => [id, latest(nodes.map(({ lastExpected }) => lastExpected[id] ?? null))])
  ),
  engines: nodes.map(({ isEngineConnected }) => isEngineConnected),
  // Undefined in the diagnostics of an older version.
  withoutInvalidations: nodes.filter(({ areInvalidationsKnown }) => areInvalidationsKnown === false).length,
  rejections: {
    origin: mergeRejections(nodes, 'origin'),
    token: mergeRejections(nodes, 'token'),
    api_key: mergeRejections(nodes, 'api_key'),
    upgrade: mergeRejections(nodes, 'upgrade'),
    limit: mergeRejections(nodes, 'limit')
  },
  silentChannels: mergeSilentChannels(nodes),
  proxies: mergeStatuses(nodes.flatMap(({ proxies }) => proxies))
})

/** A channel that is silent at several nodes is listed once. It is counted once only if it is among the listed ones. */
const mergeSilentChannels = (nodes: readonly Diagnostics[]): SilentChannels => {
  const byName = new Map<string, number>()
  let repeated = 0
  for (const { name, silentMs } of nodes.flatMap((node) => node.silentChannels.longest)) {
    const other = byName.get(name)
    if (other !== undefined) repeated++
    byName.set(name, Math.max(silentMs, other ?? 0))
  }
  const longest = [...byName].map(([name, silentMs]) => ({ name, silentMs }))
  longest.sort((left, right) => right.silentMs - left.silentMs)
  const count = nodes.reduce((sum, node) => sum + node.silentChannels.count, 0) - repeated
  return { count, longest: longest.slice(0, MAX_SILENT_CHANNELS) }
}

const latest = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.max(...known)
}

const mergeRejections = (nodes: readonly Diagnostics[], kind: keyof RecentRejections): readonly RecentCount[] => {
  const byLabel = new Map<string, RecentCount>()
  for (const { label, count, lastAt } of nodes.flatMap(({ rejections }) => rejections[kind])) {
    const other = byLabel.get(label)
    byLabel.set(label, {
      label,
      count: count + (other?.count ?? 0),
      lastAt: Math.max(lastAt, other?.lastAt ?? 0)
    })
  }
  return [...byLabel.values()].sort((left, right) => right.count - left.count)
}
