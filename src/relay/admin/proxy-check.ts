import type { ProxyStatus } from '../proxies/health.js'
import type { Check, CheckState } from './contract.js'

const RECENT_MS = 10 * 60_000

/** The advice to the operator, by the reason of the failure. */
const ADVICE: readonly (readonly [reason: RegExp, advice: string])[] = [
  [/^timeout$/, 'the backend does not answer within the timeout; check its load'],
  [/^queue-full$/, 'too many requests wait; check the speed of the backend, max_inflight and max_queue'],
  [/^status 3/, 'the endpoint redirects, and redirects are not followed; write the new address into endpoint'],
  [/^status (?:401|403)/, 'the backend rejects the requests; check static_headers and signing_secret'],
  [/^status 404/, 'the backend does not have the path of endpoint'],
  [/^status /, 'look into the log of the backend'],
  [/^too-large$/, 'the response is longer than max_response_size'],
  [/^the response|must be/, 'the backend sends a response of another form'],
  [/CERT|TLS|SSL|SIGNATURE|ALTNAME/, 'check the certificate of the backend and http.tls'],
  [/./, 'check that the backend runs and that endpoint is its address']
]

const adviceFor = (reason: string): string => ADVICE.find(([pattern]) => pattern.test(reason))?.[1] ?? ''

/** The proxies of all nodes by id. A proxy fails if it fails at one node. */
export const mergeStatuses = (statuses: readonly ProxyStatus[]): readonly ProxyStatus[] => {
  const byId = new Map<string, ProxyStatus>()
  for (const one of statuses) {
    const other = byId.get(one.id)
    if (other === undefined) byId.set(one.id, one)
    else {
      const { reason, lastFailure } = (one.lastFailure ?? 0) > (other.lastFailure ?? 0) ? one : other
      byId.set(one.id, {
        ...one,
        reason,
        lastFailure,
        callsPerSecond: one.callsPerSecond + other.callsPerSecond,
        failedPerSecond: one.failedPerSecond + other.failedPerSecond,
        failures: one.failures + other.failures,
        inFlight: one.inFlight + other.inFlight,
        queued: one.queued + other.queued
      })
    }
  }
  return [...byId.values()]
}

/** Red while the last call failed, amber for ten minutes after a failure. */
export const proxyState = ({ failures, lastFailure }: ProxyStatus, nowMs: number): CheckState => {
  if (failures > 0) return 'red'
  return lastFailure !== null && nowMs - lastFailure < RECENT_MS ? 'amber' : 'green'
}

/** Whether backends answer: the worst state of a proxy. */
export const checkProxies = (
  proxies: readonly ProxyStatus[],
  nowMs: number
): readonly [state: CheckState, sentence: string, details: Check['details']] => {
  if (proxies.length === 0) return ['green', 'No event proxies are used.', []]
  const failing = proxies
    .filter((proxy) => proxyState(proxy, nowMs) === 'red')
    .sort((left, right) => right.failures - left.failures)
  const [first] = failing
  if (first !== undefined) {
    const others = failing.length === 1 ? '' : ` and ${failing.length - 1} more`
    return [
      'red',
      `The proxy ${first.id}${others} fails (${first.reason}): ${adviceFor(first.reason)}.`,
      failing.map(({ id, failures }) => ({ label: id, count: failures }))
    ]
  }
  const recent = proxies.find((proxy) => proxyState(proxy, nowMs) === 'amber')
  return recent === undefined
    ? ['green', 'The backends of all event proxies answer.', []]
    : ['amber', `The proxy ${recent.id} failed in the last ten minutes (${recent.reason}), and works again.`, []]
}
