import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UserError } from '../../scripts/lib/command.js'
import { accepting, freePort } from '../harness/port.js'
import { startProgram } from '../harness/process.js'
import { centrifugoProgram } from '../harness/programs.js'
import { KEY, NAMESPACE, type RunningServer, SECRET } from './running-server.js'

/** The configuration of Centrifugo 6 with the same namespace, history, recovery, token secret and API key as the relay. */
export const centrifugoConfig = (port: number) => ({
  http_server: { address: '127.0.0.1', port },
  log: { level: 'error' },
  client: { token: { hmac_secret_key: SECRET }, connection_limit: 50_000 },
  http_api: { key: KEY },
  channel: { namespaces: [NAMESPACE] }
})

/** Starts the binary of `CENTRIFUGO_BIN` on one core. */
export const startCentrifugo = async (core: string): Promise<RunningServer> => {
  const program = centrifugoProgram()
  if (program === undefined) throw new UserError('CENTRIFUGO_BIN is not set')
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-centrifugo-'))
  const file = join(folder, 'config.json')
  const port = await freePort()
  writeFileSync(file, JSON.stringify(centrifugoConfig(port)))
  // With more threads than cores the Go runtime would spend CPU time on switching between them.
  const process = startProgram(core, [program, '--config', file], { GOMAXPROCS: '1' })
  await accepting(port)
  return {
    pids: [process.pid],
    ports: [port],
    dialect: 'centrifugo',
    async stop() {
      await process.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
