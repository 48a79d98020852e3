import t from 'tap'
import { WorkerProcesses } from '../../../src/relay/workers/processes.js'
import { createLogger } from '../../../src/shared/logger.js'

t.test('a worker process that cannot be started fails the start of the relay', async (t) => {
  const { execPath } = process
  t.teardown(() => {
    process.execPath = execPath
  })
  const processes = new WorkerProcesses({
    count: 2,
    listen: { host: '127.0.0.1', port: 0 },
    internalListen: null,
    hungMs: 30_000,
    log: createLogger({ name: 'relay', level: 'silent' }),
    output: () => undefined,
    configFile: () => null,
    serve: () => undefined
  })
  process.execPath = '/missing/node'

  await t.rejects(processes.start(), /worker 1 ended with spawn \/missing\/node ENOENT/)
})
