import { putRow } from './records.js'
import type { Call } from './route.js'
import type { Fields } from './world.js'

type Result = 'done' | 'denied' | 'failed'

/** The backend's audit log in the table `audit_log`. Bodies are not written: they may contain secrets. */
export const audit = (call: Call, action: string, result: Result, details: Fields = {}): Promise<void> => {
  const { caller, newId, now, request } = call
  const { ip, method, url } = request
  const who = { userId: caller?.userId ?? null, userEmail: caller?.email ?? null, ip }
  const what = { action, result, method, path: url.split('?', 1)[0] ?? '', details: JSON.stringify(details) }
  return putRow(call, 'audit_log', { id: newId(), at: now(), ...who, ...what })
}
