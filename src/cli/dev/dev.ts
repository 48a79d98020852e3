import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gatewayConfig } from '../../gateway/config.js'
import { type ListenAddress, relayConfig } from '../../relay/config/config.js'
import { type Environment, isGiven } from '../../shared/env.js'
import { portOf } from '../../shared/url-port.js'
import { type ProgramName, V8_FLAGS } from '../../shared/v8-flags.js'
import { checkBoth } from '../check-config.js'
import { type CommandContext, CommandError } from '../command.js'
import { PARENT_VARIABLE } from '../run-with-flags.js'
import { type ProgramPort, unavailablePorts } from './ports.js'
import { runTogether, stopSignal } from './run-together.js'
import type { ProgramCommand } from './running-program.js'

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url))

interface DevProgram extends ProgramPort, ProgramCommand {}

/**
 * Runs the relay, the backend command and the gateway with the settings of the environment, until Ctrl-C or the end of one of
 * them. Throws `CommandError`.
 */
export const runDev = async (
  backend: readonly string[],
  { env: given, print, printErrors }: CommandContext
): Promise<void> => {
  const env = isGiven('NODE_ENV', given) ? given : { ...given, NODE_ENV: 'development' }
  const stopped = stopSignal()
  const { errors, warnings } = await checkBoth(env)
  printErrors(warnings.map((line) => `warning: ${line}`))
  if (errors.length > 0) throw new CommandError(errors)
  const [relay, ...others] = programsOf(backend, env)
  const unavailable = await unavailablePorts([relay, ...others])
  if (unavailable.length > 0) throw new CommandError(unavailable)
  const gateway = others.at(-1)
  // The backend may publish as soon as it starts.
  await runTogether([[relay], others], {
    print,
    stopped,
    onReady: () => print(`\n  Running at http://localhost:${gateway?.port}. Stop with Ctrl-C.\n`)
  })
}

/** In the order in which they start. The settings are valid. */
const programsOf = (backend: readonly string[], env: Environment): readonly [DevProgram, ...DevProgram[]] => {
  const gateway = gatewayConfig(env)
  const relay = relayConfig(env, (path) => readFileSync(path, 'utf8'))
  return [
    program('relay', relay.internalListen ?? relay.listen, '/health', env),
    ...(backend.length === 0
      ? []
      : [
          {
            name: 'backend',
            command: backend,
            env,
            url: gateway.backend.url,
            isReadyWithAnyStatus: true,
            port: portOf(new URL(gateway.backend.url)),
            portVariable: 'BACKEND_URL'
          }
        ]),
    program('gateway', gateway.listen, '/api/health', env)
  ]
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
