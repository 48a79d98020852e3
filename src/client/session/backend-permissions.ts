import { permissionList } from './session-state.js'

type Fields = Readonly<Record<string, unknown>>

/** The permissions in the answer of `/api/auth/backend-me`, at the places where a login answer has them; null without any. */
export const backendPermissions = (answer: unknown): readonly string[] | null => {
  const data = fieldsOf(fieldsOf(answer).data ?? answer)
  return permissionList(fieldsOf(data.user).permissions) ?? permissionList(data.permissions)
}

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})
