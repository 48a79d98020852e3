import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Static } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import packageFile from '../package.json' with { type: 'json' }
import { buildGatewayApp } from './gateway/app.js'
import { CHECKS_OFF_IN_DEVELOPMENT, gatewayConfig } from './gateway/config.js'
import type { RouteTable } from './gateway/routes/tables/declare.js'
import { gatewaySettings } from './gateway/settings.js'
import { buildRelayApp } from './relay/app.js'
import type { FileChannelOptions } from './relay/config/channel-schema.js'
import { type RelayConfig, relayConfig } from './relay/config/config.js'
import { relaySettings } from './relay/config/settings.js'
import { type Environment, type Setting, type Settings, SettingsError } from './shared/env.js'
import { createLogger } from './shared/logger.js'

// The package entry `gatehouse`: both servers for programs that embed them. Everything else is internal.

export { SettingsError } from './shared/env.js'

/** A size may have a unit: `64KiB`. */
type ByteSize = number | `${number}KiB` | `${number}MiB`

/** The type of a setting: a number, a list, one of some words and so on. */
type ValueOf<S extends Setting> = S extends { readonly unit: 'bytes' }
  ? ByteSize
  : Static<S['schema']> extends readonly (infer Entry)[]
    ? readonly Entry[]
    : Static<S['schema']>

type ValuesOf<All extends Settings> = { readonly [Name in keyof All]?: ValueOf<All[Name]> | undefined }

/** Settings of the gateway by the name of their variable: `{ BACKEND_URL: 'http://127.0.0.1:4000' }`. */
export type GatewaySettings = ValuesOf<typeof gatewaySettings>

/** Settings of the relay by the name of their variable: `{ REALTIME_API_KEY: '…' }`. */
export type RelaySettings = ValuesOf<typeof relaySettings>

/** The options of a namespace, as in the relay's config file. */
export type NamespaceOptions = FileChannelOptions

export interface GatewayOptions {
  readonly config: GatewaySettings
  /** Route tables of `gatehouse-server/routes`, or the path of a file as in GATEWAY_ROUTES. Default: the built-in routes. */
  readonly routes?: readonly RouteTable[] | string
  /** A pino logger. Default: JSON lines to stdout at the level LOG_LEVEL. */
  readonly logger?: Logger
}

/**
 * Builds a gateway that does not listen yet: `await gateway.listen({ port: 3000 })`. `await gateway.close()` drains its
 * connections. Rejects with a `SettingsError` whose `errors` has one line per error.
 */
export const buildGateway = async ({ config, routes, logger }: GatewayOptions): Promise<FastifyInstance> => {
  if (routes !== undefined && config.GATEWAY_ROUTES !== undefined) {
    throw new SettingsError(['GATEWAY_ROUTES and routes must not both be set'])
  }
  const settings = typeof routes === 'string' ? { ...config, GATEWAY_ROUTES: routes } : config
  const gateway = gatewayConfig(environmentOf(settings, gatewaySettings))
  const log = logger ?? createLogger({ name: 'gateway', level: gateway.logLevel })
  if (!gateway.production) log.warn({ checksOff: CHECKS_OFF_IN_DEVELOPMENT }, 'development mode, checks are off')
  const { app } = await buildGatewayApp(gateway, { log, ...(Array.isArray(routes) && { routes }) })
  return app
}

export interface RelayOptions {
  readonly config: RelaySettings
  /** Namespaces of channels by their name, in place of a config file: `{ orders: { allow_subscribe_for_client: true } }`. */
  readonly namespaces?: Readonly<Record<string, NamespaceOptions>>
  /** A pino logger. Default: JSON lines to stdout at the level LOG_LEVEL. */
  readonly logger?: Logger
}

export interface EmbeddedRelay {
  /** Does not listen yet: `relay.server.listen(8100)`. */
  readonly server: Server
  /** Serves the API, the operators' page, metrics and health if `http_server.internal_port` is configured; else null. */
  readonly internalServer: Server | null
  /** Stops accepting clients and closes the others at a limited rate, so that they do not reconnect all at once. */
  close(): Promise<void>
}

/** Builds a relay in this process, without workers. Rejects with a `SettingsError` whose `errors` has one line per error. */
export const buildRelay = async ({ config, namespaces, logger }: RelayOptions): Promise<EmbeddedRelay> => {
  const environment = environmentOf(config, relaySettings)
  const relay =
    namespaces === undefined
      ? relayConfig(environment, (path) => readFileSync(path, 'utf8'))
      : configWithNamespaces(environment, namespaces)
  if (relay.workers > 1) throw new SettingsError(['RELAY_WORKERS must be 1 for a relay inside another program'])
  const log = logger ?? createLogger({ name: 'relay', level: relay.logLevel })
  const version = `gatehouse-relay ${packageFile.version}`
  const { server, internalServer, close } = await buildRelayApp(relay, { log, version })
  return { server, internalServer, close }
}

/** The namespaces are read as a file, whose errors name them. */
const configWithNamespaces = (
  environment: Environment,
  namespaces: Readonly<Record<string, NamespaceOptions>>
): RelayConfig => {
  if (environment.RELAY_CONFIG !== undefined)
    throw new SettingsError(['RELAY_CONFIG and namespaces must not both be set'])
  const names = Object.keys(namespaces)
  const file = { channel: { namespaces: names.map((name) => ({ ...namespaces[name], name })) } }
  try {
    return relayConfig({ ...environment, RELAY_CONFIG: 'namespaces.json' }, () => JSON.stringify(file))
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    const path = /^RELAY_CONFIG: channel\.namespaces\[(\d+)\]/
    throw new SettingsError(
      error.errors.map((line) => line.replace(path, (_, index) => `namespaces.${names[Number(index)]}`))
    )
  }
}

const environmentOf = (values: Readonly<Record<string, unknown>>, settings: Settings): Environment => {
  const unknown = Object.keys(values).filter((name) => !Object.hasOwn(settings, name))
  const split = Object.keys(values).filter((name) => {
    const value = values[name]
    return Array.isArray(value) && value.some((entry) => String(entry).includes(','))
  })
  const errors = [
    ...unknown.map((name) => `${name} is not a setting`),
    // A list becomes the text of a variable.
    ...split.map((name) => `${name} must not have entries with a comma`)
  ]
  if (errors.length > 0) throw new SettingsError(errors)
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value === undefined ? undefined : String(value)])
  )
}
