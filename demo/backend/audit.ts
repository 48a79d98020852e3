import { putRow } from './records.js'
import type { Call } from './route.js'
import type { Fields } from './world.js'

type Result = 'done' | 'denied' | 'failed'

/** The backend's audit log in the table `audit_log`. */
export const audit = (call: Call, action: string, result: Result, details: Fields = {}): Promise<void> => {
  const { caller, newId, now, request, audited } = call
  audited.push(action)
  const { ip, method, url } = request
  const who = { userId: caller?.userId ?? null, userEmail: caller?.email ?? null, ip }
  const what = { action, result, method, path: url.split('?', 1)[0] ?? '', details: JSON.stringify(details) }
  return putRow(call, 'audit_log', { id: newId(), at: now(), ...who, ...what })
}

const MAX_SUBJECTS = 5
const MAX_FIELDS = 30

/** The rows that a request is about, and the names of the sent fields. Values are not written: they may be secret. */
export const entryDetails = ({ subjects, body, request }: Call): Fields => {
  const others = subjects.length - MAX_SUBJECTS
  const names = subjects.slice(0, MAX_SUBJECTS).join(', ')
  const fields = request.method === 'PUT' || request.method === 'PATCH' ? Object.keys(body) : []
  return {
    ...(subjects.length > 0 && { subject: others > 0 ? `${names} and ${others} more` : names }),
    ...(fields.length > 0 && { fields: fields.slice(0, MAX_FIELDS).map((field) => field.slice(0, 100)) })
  }
}
