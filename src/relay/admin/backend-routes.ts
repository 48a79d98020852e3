import type { BackendRow, RevocationPage } from './contract.js'
import type { AdminCall } from './guard.js'
import { ifAvailable } from './if-available.js'
import { searchTest } from './listing.js'
import { mergeStatuses, proxyState } from './proxy-check.js'
import type { RouteDependencies } from './route-dependencies.js'

/** The event of webhooks. */
const STATE_EVENT = 'state'

/** The event proxies and webhooks of all nodes. */
export const sendBackends =
  ({ surveys, relay, waitingEvents }: RouteDependencies) =>
  async (call: AdminCall): Promise<void> => {
    const [statuses, waiting] = await Promise.all([surveys.survey('adminProxies', null), ifAvailable(waitingEvents())])
    const merged = mergeStatuses(statuses.flatMap(({ result }) => result))
    const nowMs = relay.clocks.nowMs()
    const rows = merged.map((status): BackendRow => {
      const { id, events, callsPerSecond, failedPerSecond, inFlight, queued, reason, lastFailure } = status
      return {
        id,
        events,
        state: proxyState(status, nowMs),
        callsPerSecond,
        errorRate: callsPerSecond === 0 ? null : Math.min(1, failedPerSecond / callsPerSecond),
        inFlight,
        queued,
        waitingEvents: events.includes(STATE_EVENT) ? (waiting?.get(status.name) ?? null) : null,
        reason,
        lastFailure
      }
    })
    call.json(rows)
  }

const MAX_REVOCATIONS = 100
const MAX_SEARCH_LENGTH = 256

/** The revoked tokens in force. Each node has all of them. */
export const sendRevocations =
  ({ relay }: RouteDependencies) =>
  (call: AdminCall): void => {
    const search = call.query.get('search') ?? ''
    if (search.length > MAX_SEARCH_LENGTH) {
      call.reject(400, 'BAD_REQUEST', `search must not be longer than ${MAX_SEARCH_LENGTH} characters`)
      return
    }
    const matches = searchTest(search)
    const found = relay.tokenInvalidations.filter(({ user }) => matches(user))
    const page: RevocationPage = { total: found.length, rows: found.slice(0, MAX_REVOCATIONS) }
    call.json(page)
  }
