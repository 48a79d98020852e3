import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gatewayConfig } from '../../gateway/config.js'
import { type ListenAddress, relayConfig } from '../../relay/config/config.js'
import type { Environment } from '../../shared/env.js'
import { portOf } from '../../shared/url-port.js'
import { type ProgramName, V8_FLAGS } from '../../shared/v8-flags.js'
import { checkBoth } from '../check-config.js'
import { type CommandContext, CommandError } from '../command.js'
import { PARENT_VARIABLE } from '../run-with-flags.js'
import { developmentSettings } from './development-settings.js'
import { type ProgramPort, unavailablePorts } from './ports.js'
import { runTogether, stopSignal } from './run-together.js'
import type { ProgramCommand } from './running-program.js'

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url))

interface DevProgram extends ProgramPort, ProgramCommand {}

/** Empty for none. */
export interface DevCommands {
  readonly backend: readonly string[]
  /** The development server of a web application. */
  readonly web: readonly string[]
}

/**
 * Runs the relay, the backend command, the gateway and the web command with the settings of the environment, until Ctrl-C. Throws
 * `CommandError`.
 */
export const runDev = async (
  commands: DevCommands,
  { env: given, print, printErrors }: CommandContext
): Promise<void> => {
  const stopped = stopSignal()
  const parts = { hasBackend: commands.backend.length > 0, hasWeb: commands.web.length > 0 }
  const { env, webPort, notes } = await developmentSettings(given, parts)
  // Without TLS on this machine, the derived COOKIE_SECURE=false is right.
  const { errors, warnings } = await checkBoth({ ...env, COOKIE_SECURE: given.COOKIE_SECURE })
  printErrors(warnings.map((line) => `warning: ${line}`))
  if (errors.length > 0) throw new CommandError(errors)
  for (const note of notes) print(note)
  const { relay, others, pageUrl } = programsOf(commands, env, webPort)
  const unavailable = await unavailablePorts([relay, ...others])
  if (unavailable.length > 0) throw new CommandError(unavailable)
  const { DEV_ACCOUNT: account, PASSWORD: password } = env
  const signIn = account && password ? ` Sign in as ${account} with the password ${password}.` : ''
  // The backend may publish as soon as it starts.
  await runTogether([[relay], others], {
    print,
    stopped,
    onReady: () => print(`\n  Running at ${pageUrl}.${signIn} Stop with Ctrl-C.\n`)
  })
}

/** The settings are valid. */
const programsOf = ({ backend, web }: DevCommands, env: Environment, webPort: number) => {
  const gateway = gatewayConfig(env)
  const relay = relayConfig(env, (path) => readFileSync(path, 'utf8'))
  const gatewayUrl = `http://localhost:${gateway.listen.port}`
  const webUrl = `http://localhost:${webPort}`
  const others: DevProgram[] = [program('gateway', gateway.listen, '/api/health', env)]
  if (backend.length > 0)
    others.unshift({
      name: 'backend',
      command: backend,
      env,
      url: gateway.backend.url,
      isReadyWithAnyStatus: true,
      isWatched: true,
      port: portOf(new URL(gateway.backend.url)),
      portVariable: 'BACKEND_URL'
    })
  if (web.length > 0)
    others.push({
      name: 'web app',
      command: web,
      // Development servers build for production otherwise.
      env: { ...env, NODE_ENV: 'development', GATEWAY_URL: gatewayUrl, WEB_PORT: String(webPort) },
      url: webUrl,
      isReadyWithAnyStatus: true,
      port: webPort,
      portVariable: 'WEB_PORT'
    })
  return {
    relay: program('relay', relay.internalListen ?? relay.listen, '/health', env),
    others,
    pageUrl: web.length > 0 ? webUrl : env.PUBLIC_URL || gatewayUrl
  }
}

const program = (
  name: ProgramName,
  { host, port }: ListenAddress,
  healthPath: string,
  env: Environment
): DevProgram => ({
  name,
  command: [process.execPath, ...V8_FLAGS[name], MAIN, name],
  // It stops if this process is killed.
  env: { ...env, [PARENT_VARIABLE]: String(process.pid) },
  url: `http://${WILDCARDS.includes(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}${healthPath}`,
  isReadyWithAnyStatus: true,
  port,
  portVariable: `${name.toUpperCase()}_PORT`
})

const WILDCARDS = ['0.0.0.0', '::']
