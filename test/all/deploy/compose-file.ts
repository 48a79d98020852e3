import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { parse } from 'yaml'
import { shipped } from './shipped.js'

// The parts of the compose format that docker-compose.yml uses. Other names are rejected, so that misspellings are found.
const closed = <T extends Record<string, TSchema>>(properties: T) =>
  Type.Object(properties, { additionalProperties: false })

const named = <T extends TSchema>(schema: T) => Type.Record(Type.String({ pattern: '^[a-z][a-z0-9_-]*$' }), schema)

const Duration = Type.String({ pattern: '^\\d+s$' })
const Size = Type.String({ pattern: '^\\d+(?:M|mb|m)$' })
const User = Type.String({ pattern: '^\\d+:\\d+$' })

const HealthCheck = Type.Union([
  closed({ disable: Type.Literal(true) }),
  closed({
    test: Type.Array(Type.String(), { minItems: 2 }),
    interval: Duration,
    timeout: Duration,
    retries: Type.Integer({ minimum: 1 }),
    start_period: Type.Optional(Duration)
  })
])

const ServiceNetworks = Type.Union([
  Type.Array(Type.String()),
  named(Type.Union([Type.Null(), closed({ ipv4_address: Type.String({ pattern: '^\\d+(?:\\.\\d+){3}$' }) })]))
])

const ComposeService = closed({
  image: Type.String(),
  build: Type.Optional(closed({ context: Type.Literal('.'), dockerfile: Type.String() })),
  profiles: Type.Optional(Type.Array(Type.String())),
  restart: Type.Union([Type.Literal('unless-stopped'), Type.Literal('no')]),
  read_only: Type.Literal(true),
  cap_drop: Type.Tuple([Type.Literal('ALL')]),
  cap_add: Type.Optional(Type.Array(Type.String())),
  security_opt: Type.Tuple([Type.Literal('no-new-privileges:true')]),
  logging: closed({
    driver: Type.Literal('json-file'),
    options: closed({ 'max-size': Size, 'max-file': Type.String() })
  }),
  user: Type.Optional(User),
  entrypoint: Type.Optional(Type.Array(Type.String())),
  command: Type.Optional(Type.Array(Type.String())),
  ports: Type.Optional(Type.Array(Type.String())),
  environment: Type.Optional(Type.Record(Type.String({ pattern: '^[A-Z][A-Z0-9_]*$' }), Type.String())),
  extra_hosts: Type.Optional(Type.Array(Type.String())),
  volumes: Type.Optional(Type.Array(Type.String({ pattern: '^[^:]+:/[^:]+(?::ro)?$' }))),
  tmpfs: Type.Optional(Type.Array(Type.String())),
  shm_size: Type.Optional(Size),
  secrets: Type.Optional(Type.Array(Type.String())),
  networks: Type.Optional(ServiceNetworks),
  network_mode: Type.Optional(Type.Literal('none')),
  depends_on: Type.Optional(
    named(
      closed({
        condition: Type.Union([Type.Literal('service_healthy'), Type.Literal('service_completed_successfully')])
      })
    )
  ),
  healthcheck: Type.Optional(HealthCheck),
  ulimits: Type.Optional(closed({ nofile: closed({ soft: Type.Integer(), hard: Type.Integer() }) })),
  stop_grace_period: Type.Optional(Duration),
  stop_signal: Type.Optional(Type.String()),
  deploy: closed({
    resources: closed({
      limits: closed({
        cpus: Type.String({ pattern: '^\\d+(?:\\.\\d+)?$' }),
        memory: Size,
        pids: Type.Integer({ minimum: 1 })
      })
    })
  })
})

const ComposeFile = Type.Object(
  {
    name: Type.String(),
    services: named(ComposeService),
    networks: named(
      Type.Union([
        Type.Null(),
        closed({
          internal: Type.Literal(true),
          ipam: closed({ config: Type.Tuple([closed({ subnet: Type.String(), ip_range: Type.String() })]) })
        })
      ])
    ),
    volumes: named(Type.Null()),
    secrets: named(closed({ file: Type.String() })),
    'x-hardened': Type.Unknown(),
    'x-built': Type.Unknown()
  },
  { additionalProperties: false }
)

export type ComposeService = Static<typeof ComposeService>
export type ComposeFile = Static<typeof ComposeFile>

/** The schema violations of a compose file, one line each. */
export const composeErrors = (text: string): string[] =>
  [...Value.Errors(ComposeFile, parse(text, { merge: true }))].map(({ path, message }) => `${path}: ${message}`)

/** Requires a text without schema violations. */
export const composeFile = (text: string): ComposeFile =>
  Value.Decode(ComposeFile, interpolated(parse(text, { merge: true })))

/** Replaces `${NAME:-default}` by the default and `$$` by `$`, as compose does without variables. */
const interpolated = (value: unknown): unknown => {
  if (typeof value === 'string') return value.replaceAll(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1').replaceAll('$$', '$')
  if (Array.isArray(value)) return value.map(interpolated)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, interpolated(inner)]))
}

export const shippedCompose = (): ComposeFile => composeFile(shipped('docker-compose.yml'))

/** The fixed address of a service on each of its networks; null if it has none. */
export const networksOf = ({ networks = [] }: ComposeService): Readonly<Record<string, string | null>> =>
  Array.isArray(networks)
    ? Object.fromEntries(networks.map((name) => [name, null]))
    : Object.fromEntries(Object.entries(networks).map(([name, settings]) => [name, settings?.ipv4_address ?? null]))
