import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.js'
import { queryNames } from '../http/field-names.js'

/** The fields of a login with a password. `LOGIN_REQUEST_FIELDS` adds others. */
export const LOGIN_FIELDS: readonly string[] = ['email', 'username', 'password', 'rememberMe']

/**
 * Throws an error if a login has a field that is not allowed, in its body or its query, which some backends merge into the body.
 * A list of forbidden names would not do: each decoder reads other names as the field of the exchange, which needs no password.
 */
export const checkLoginFields = ({ body, raw }: FastifyRequest, allowed: ReadonlySet<string>): void => {
  // The schema of the route requires an object.
  const fields = Object.entries(body as object)
  const details = [
    ...[...fields.map(([name]) => name), ...queryNames(raw.url ?? '')]
      .filter((name) => !allowed.has(name))
      .map((name) => ({ path: `/${name}`, message: 'is not allowed here' })),
    // Some backends read the members of an object as fields of the body.
    ...fields
      .filter(([name, value]) => allowed.has(name) && typeof value === 'object' && value !== null)
      .map(([name]) => ({ path: `/${name}`, message: 'must be a text, a number or a boolean' }))
  ]
  if (details.length > 0) throw new GatewayError('VALIDATION_FAILED', { details })
}
