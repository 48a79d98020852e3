import { fieldsOf } from '../fields-of.js'
import { permissionList } from './session-state.js'

/** The permissions in a response of `/api/auth/backend-me`, in the same fields as in a login response; null without any. */
export const backendPermissions = (response: unknown): readonly string[] | null => {
  const data = fieldsOf(fieldsOf(response).data ?? response)
  return permissionList(fieldsOf(data.user).permissions) ?? permissionList(data.permissions)
}
