import { lookup } from 'node:dns/promises'
import type { FastifyInstance } from 'fastify'
import packageFile from '../../package.json' with { type: 'json' }
import { type Environment, SettingsError } from '../shared/env.js'
import { messageOf } from '../shared/error-message.js'
import { onHangup } from '../shared/hangup.js'
import { AddressSet } from '../shared/ip-address.js'
import { type ListenSettings, listenError } from '../shared/listen-error.js'
import { createLogger } from '../shared/logger.js'
import { openTracer } from '../shared/open-tracer.js'
import { closeOnSignal } from '../shared/shutdown.js'
import { type UnknownSetting, unknownSettingLine, unknownSettings } from '../shared/unknown-settings.js'
import { CHECKS_OFF_IN_DEVELOPMENT, type GatewayConfig, gatewayConfig } from './config.js'
import { gatewaySettings } from './settings.js'

const run = async (
  environment: Environment,
  config: GatewayConfig,
  unknown: readonly UnknownSetting[]
): Promise<void> => {
  const log = createLogger({ name: 'gateway', level: config.logLevel })
  for (const setting of unknown) log.warn(setting, 'unknown setting')
  const host = await listenAddress(config.listen)
  if (!config.production) log.warn({ checksOff: CHECKS_OFF_IN_DEVELOPMENT }, 'development mode, checks are off')
  const { version } = packageFile
  const tracer = await openTracer(environment, { serviceName: 'gatehouse-gateway', version, log })
  // Loaded after the settings are known to be valid: a gateway that cannot start ends in half the time.
  const { buildGatewayApp } = await import('./app.js')
  const { app, internal, audit, announceShutdown } = await buildGatewayApp(config, { log, tracer })
  closeOnSignal(
    { announceShutdown, close: () => app.close(), closeConnections: () => app.server.closeAllConnections() },
    log,
    { delayMs: config.shutdownDelayMs }
  )
  onHangup(() => void audit.reopen())

  if (internal !== null && config.revocation !== null)
    await listenAt(internal, config.revocation.listen, INTERNAL_LISTEN_SETTINGS, 'internal routes at')
  await listenAt(app, { host, port: config.listen.port }, LISTEN_SETTINGS, 'listening at')
}

const LISTEN_SETTINGS: ListenSettings = { host: 'GATEWAY_HOST', port: 'GATEWAY_PORT' }
const INTERNAL_LISTEN_SETTINGS: ListenSettings = { host: 'GATEWAY_INTERNAL_HOST', port: 'GATEWAY_INTERNAL_PORT' }

const listenAt = async (
  app: FastifyInstance,
  address: { readonly host: string; readonly port: number },
  settings: ListenSettings,
  message: string
): Promise<void> => {
  try {
    await app.listen({ ...address, listenTextResolver: (url) => `${message} ${url}` })
  } catch (error) {
    throw listenError(error, settings)
  }
}

/**
 * The address to listen on. For a name with several addresses, Fastify would open a server for each, and only the first
 * could be drained.
 */
const listenAddress = async ({ host, loopbackOnly }: GatewayConfig['listen']): Promise<string> => {
  const address = await firstAddress(host)
  if (loopbackOnly && !LOOPBACK.has(address)) {
    throw new SettingsError([
      `GATEWAY_HOST must be a loopback address outside production, not ${address}: ` +
        'set NODE_ENV=production, or GATEWAY_ALLOW_DEVELOPMENT=true to accept requests without checks'
    ])
  }
  return address
}

const LOOPBACK = new AddressSet(['loopback'])

const firstAddress = async (host: string): Promise<string> => {
  try {
    return (await lookup(host, { order: 'ipv4first' })).address
  } catch (error) {
    throw listenError(error, LISTEN_SETTINGS)
  }
}

/** Prints one line per error, without a stack trace. */
const exitWithErrors = (lines: readonly string[]): never => {
  process.stderr.write(lines.map((line) => `gateway: ${line}\n`).join(''))
  process.exit(1)
}

/** A start ends with the first step that fails; the errors of all are reported at once. */
const allErrors = async (environment: Environment, { errors: found }: SettingsError): Promise<readonly string[]> => {
  const { checkGatewayFiles } = await import('./check-files.js')
  const { errors } = await checkGatewayFiles(environment)
  return errors.length > 0 ? errors : found
}

export const start = async (environment: Environment): Promise<void> => {
  const unknown = unknownSettings(gatewaySettings, environment)
  try {
    await run(environment, gatewayConfig(environment), unknown)
  } catch (error) {
    // A missing setting may be misspelled.
    if (error instanceof SettingsError)
      exitWithErrors([...(await allErrors(environment, error)), ...unknown.map(unknownSettingLine)])
    exitWithErrors([`cannot start: ${messageOf(error)}`])
  }
}
