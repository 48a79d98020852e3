import type { Fields } from './database/database.js'
import { putRow } from './records.js'
import type { Call } from './route.js'

type Result = 'done' | 'denied' | 'failed'

/** The backend's own record of who did what, in the table `audit_log`. */
export const audit = (call: Call, action: string, result: Result, details: Fields = {}): Promise<void> => {
  const { caller, newId, now } = call
  const { ip, method, url } = call.request
  return putRow(call, 'audit_log', {
    id: newId(),
    at: now(),
    action,
    result,
    userId: caller?.userId ?? null,
    userEmail: caller?.email ?? null,
    ip,
    method,
    path: url.split('?', 1)[0] ?? '',
    details: JSON.stringify(details)
  })
}
