import { SettingsFault } from '../shared/env.js'
import { createLogger } from '../shared/logger.js'
import { closeOnSignal } from '../shared/shutdown.js'
import { keepYoungObjectsYoung } from '../shared/young-objects.js'
import { buildGateway } from './app.js'
import { type GatewayConfig, gatewayConfig } from './config.js'
import { connectionDrain } from './http-edge.js'

const start = async (config: GatewayConfig): Promise<void> => {
  const log = createLogger({ name: 'gateway', level: config.logLevel })
  const { app, audit } = await buildGateway(config, { log })
  const drainConnections = connectionDrain(app.server)
  app.addHook('preClose', async () => drainConnections())
  closeOnSignal({ close: () => app.close(), cutOff: () => app.server.closeAllConnections() }, log)
  process.on('SIGHUP', () => void audit.reopen())

  await app.listen({ ...config.listen, listenTextResolver: (address) => `listening at ${address}` })
}

/** A person reads this: one line per fault, no stack trace. */
const giveUp = (lines: readonly string[]): never => {
  process.stderr.write(lines.map((line) => `gateway: ${line}\n`).join(''))
  process.exit(1)
}

keepYoungObjectsYoung()
try {
  await start(gatewayConfig(process.env))
} catch (error) {
  if (error instanceof SettingsFault) giveUp(error.faults)
  giveUp([`cannot start: ${error instanceof Error ? error.message : String(error)}`])
}
