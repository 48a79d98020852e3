import { permissionList } from './session-state.js'

type Fields = Readonly<Record<string, unknown>>

/** The permissions in a response of `/api/auth/backend-me`, in the same fields as in a login response; null without any. */
export const backendPermissions = (response: unknown): readonly string[] | null => {
  const data = fieldsOf(fieldsOf(response).data ?? response)
  return permissionList(fieldsOf(data.user).permissions) ?? permissionList(data.permissions)
}

const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {})

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null
