import { FormatRegistry, type Static, Type } from '@sinclair/typebox'
import { toCanonicalPath } from '../../shared/request-path.js'
// Registers the format `http-url`.
import '../../shared/setting-kinds.js'
import { ACTING_HEADERS, isActingHeader } from '../proxy/response-headers.js'
import { IDENTITY_FIELDS } from '../session/identity-headers.js'

/** Requests that match no row go to `BACKEND_URL`, whose name in metrics and health checks it is. */
export const DEFAULT_UPSTREAM = 'default'

FormatRegistry.Set('upstream-path', (text) => isPrefix(text))
FormatRegistry.Set('host-name', (text) => HOST_NAME.test(text))
FormatRegistry.Set('acting-header', (text) => isActingHeader(text.toLowerCase()))

// Characters that the router reads as a parameter, a wildcard or a pattern.
const ROUTER_SYNTAX = /[*:()]/

const isPrefix = (text: string): boolean =>
  text === '/' || (toCanonicalPath(text) === text && !text.endsWith('/') && !ROUTER_SYNTAX.test(text))

const HOST_NAME = /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])$/

const Prefix = Type.String({ format: 'upstream-path', rule: 'a path such as /reports, without a slash at its end' })
const Prefixes = Type.Optional(Type.Array(Prefix, { rule: 'a list of paths' }))

const integer = (minimum: number, maximum: number) =>
  Type.Optional(Type.Integer({ minimum, maximum, rule: `a whole number from ${minimum} to ${maximum}` }))

const headerName = () => Type.Optional(Type.String({ rule: 'the name of a header' }))

export const UpstreamRow = Type.Object(
  {
    name: Type.String({
      pattern: '^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$',
      rule: '1 to 32 lower-case letters, digits and dashes, with no dash at either end'
    }),
    url: Type.String({ format: 'http-url', rule: 'an http or https address without user, query or fragment' }),
    hosts: Type.Optional(
      Type.Array(Type.String({ format: 'host-name', rule: 'a host name without a port' }), {
        minItems: 1,
        rule: 'a list of host names'
      })
    ),
    paths: Type.Array(Prefix, { minItems: 1, rule: 'a list of paths' }),
    strip_prefix: Type.Optional(Type.Union([Type.Boolean(), Prefix], { rule: 'true, false or a path' })),
    routes: Type.Optional(
      Type.String({ pattern: '\\.(?:json|ya?ml)$', rule: 'the path of an OpenAPI document (.json, .yaml, .yml)' })
    ),
    websocket: Type.Optional(Type.Boolean({ rule: 'true or false' })),
    max_websockets: integer(1, 1_000_000),
    timeout_ms: integer(1, 600_000),
    connections: integer(1, 4096),
    max_queue: integer(0, 1_000_000),
    stream_idle_ms: integer(1, 86_400_000),
    token: Type.Optional(
      Type.Union([Type.Literal('app'), Type.Literal('provider'), Type.Literal('none')], {
        rule: 'one of app, provider, none'
      })
    ),
    identity_headers: Type.Optional(
      Type.Object(
        { user: headerName(), email: headerName(), role: headerName(), permissions: headerName() },
        { additionalProperties: false, minProperties: 1, rule: `an object with ${IDENTITY_FIELDS.join(', ')}` }
      )
    ),
    pass_response_headers: Type.Optional(
      Type.Array(Type.String({ format: 'acting-header', rule: `X-Accel-… or one of ${ACTING_HEADERS.join(', ')}` }), {
        rule: 'a list of header names'
      })
    ),
    public_paths: Prefixes,
    strict_paths: Prefixes,
    admin_paths: Prefixes
  },
  { additionalProperties: false, rule: 'an object' }
)

/** A row as it is written in the file. */
export type UpstreamRow = Static<typeof UpstreamRow>
