import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import packageFile from '../package.json' with { type: 'json' }
import { buildGatewayApp } from './gateway/app.js'
import { CHECKS_OFF_IN_DEVELOPMENT, gatewayConfig } from './gateway/config.js'
import type { RouteTable } from './gateway/routes/tables/declare.js'
import { gatewaySettings } from './gateway/settings.js'
import { buildRelayApp } from './relay/app.js'
import { relayConfig } from './relay/config/config.js'
import { relaySettings } from './relay/config/settings.js'
import { type Environment, type Settings, SettingsError } from './shared/env.js'
import { createLogger } from './shared/logger.js'

// The package entry `gatehouse`: both servers for programs that embed them. Everything else is internal.

type SettingValue = string | number | boolean | readonly string[]

/** Settings of the gateway by the name of their variable: `{ BACKEND_URL: 'http://127.0.0.1:4000' }`. */
export type GatewaySettings = { readonly [Name in keyof typeof gatewaySettings]?: SettingValue }

/** Settings of the relay by the name of their variable: `{ REALTIME_API_KEY: '…' }`. */
export type RelaySettings = { readonly [Name in keyof typeof relaySettings]?: SettingValue }

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
export const buildRelay = async ({ config, logger }: RelayOptions): Promise<EmbeddedRelay> => {
  const relay = relayConfig(environmentOf(config, relaySettings), (path) => readFileSync(path, 'utf8'))
  if (relay.workers > 1) throw new SettingsError(['RELAY_WORKERS must be 1 for a relay inside another program'])
  const log = logger ?? createLogger({ name: 'relay', level: relay.logLevel })
  const version = `gatehouse-relay ${packageFile.version}`
  const { server, internalServer, close } = await buildRelayApp(relay, { log, version })
  return { server, internalServer, close }
}

const environmentOf = (values: Readonly<Record<string, SettingValue | undefined>>, settings: Settings): Environment => {
  const unknown = Object.keys(values).filter((name) => !Object.hasOwn(settings, name))
  if (unknown.length > 0) throw new SettingsError(unknown.map((name) => `${name} is not a setting`))
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value === undefined ? undefined : String(value)])
  )
}
