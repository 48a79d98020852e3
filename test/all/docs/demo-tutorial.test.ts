import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'
import { freePort } from '../../helper/free-port.js'
import { newDatabase } from '../../helper/postgres.js'
import { commandBlocks, DocumentedShell, expectedOutput, hasFragments, type Server } from './command-blocks.js'

t.test('the commands of the demo tutorial work', async (t) => {
  const [gatewayPort, relayPort] = [await freePort(), await freePort()]
  const page = readFileSync(join(ROOT, 'docs/tutorials/demo.md'), 'utf8')
    .replaceAll('3000', `${gatewayPort}`)
    .replaceAll('8100', `${relayPort}`)
    .replaceAll('api-key.txt', join(t.testdir(), 'api-key.txt'))
    // Installed and built already.
    .replace('npm ci && npm start', 'npm start -- --no-build')
  const shell = new DocumentedShell(t, ROOT, {
    PATH: environment.path,
    GATEWAY_PORT: `${gatewayPort}`,
    RELAY_PORT: `${relayPort}`,
    DEMO_BACKEND_PORT: `${await freePort()}`,
    // demo/test/databases.test.ts uses the embedded database, which takes ten CPU seconds to start.
    DATABASE_URL: await newDatabase(),
    // No command needs positions.
    DEMO_SIMULATOR: 'off'
  })

  let running: Pick<Server, 'stop'> = { stop: async () => {} }
  let outputs = 0
  for (const { commands, isServer, skipped } of commandBlocks(page)) {
    if (skipped !== undefined) continue
    if (isServer) {
      // The page asks the reader to stop the demo first.
      await running.stop()
      running = await shell.start(commands, 'Gatehouse is running')
      continue
    }
    const output = await shell.run(commands)
    for (const fragments of expectedOutput(commands)) {
      t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
      outputs += 1
    }
  }
  t.equal(outputs, 3)
})
