import { wallTimeOf } from '../core/clocks.js'
import type { Relay } from '../core/relay.js'
import type { RecentCount } from '../edge/recent-counts.js'
import type { Trouble, Troubles } from '../edge/troubles.js'

/** What one node has seen of what usually goes wrong. Times are milliseconds since 1970. */
export interface Symptoms {
  readonly startedAt: number
  readonly clients: number
  readonly lastFloor: number | null
  readonly lastGlobal: number | null
  readonly lastPublish: number | null
  /** Null where the engine is within the relay. */
  readonly isEngineConnected: boolean | null
  readonly troubles: Readonly<Record<Trouble, readonly RecentCount[]>>
}

export const FLOOR = 'floor'
export const GLOBAL = 'global:all'

export interface SymptomParts {
  readonly relay: Relay
  readonly troubles: Troubles
  /** On the monotonic clock. */
  readonly startedAt: number
  readonly isEngineConnected: () => boolean | null
}

export const nodeSymptoms = ({ relay, troubles, startedAt, isEngineConnected }: SymptomParts): Symptoms => {
  const { context } = relay
  const { activity, roster } = context
  const wallTime = (monotonicMs: number | null): number | null =>
    monotonicMs === null ? null : wallTimeOf(monotonicMs, context)
  return {
    startedAt: wallTimeOf(startedAt, context),
    clients: roster.all.length,
    lastFloor: wallTime(activity.lastIn(FLOOR)),
    lastGlobal: wallTime(activity.channels.get(GLOBAL)?.lastAt ?? null),
    lastPublish: wallTime(activity.last),
    isEngineConnected: isEngineConnected(),
    troubles: {
      origin: troubles.recent('origin'),
      token: troubles.recent('token'),
      key: troubles.recent('key'),
      upgrade: troubles.recent('upgrade')
    }
  }
}
