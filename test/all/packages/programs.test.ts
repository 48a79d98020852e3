import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import packageFile from '../../../package.json' with { type: 'json' }
import { startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { freePort } from '../../helper/free-port.js'
import { API_SECRET } from '../../helper/gateway.js'
import { installedPackages, run } from './tarballs.js'

const PATIENCE_MS = 120_000
const SECRET = 'b1c2d3e4'.repeat(8)

const folder = installedPackages()
const bin = join(folder, 'node_modules/.bin/gatehouse')

/** Runs a program beside the installed packages and returns its output. */
const runProgram = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return run(folder, process.execPath, name).trim()
}

t.test('gatehouse-server does not install the packages for tracing', async (t) =>
  t.notOk(existsSync(join(folder, 'node_modules/@opentelemetry/sdk-trace-base')))
)

t.test('gatehouse-server has the command under both names', async (t) => {
  for (const name of ['gatehouse', 'gatehouse-server'])
    t.equal(run(folder, join(folder, 'node_modules/.bin', name), '--version'), `${packageFile.version}\n`)
})

t.test('a CommonJS program can require the packages', async (t) => {
  const output = runProgram(
    'program.cjs',
    `const { buildGateway, buildRelay } = require('gatehouse-server')
    const { negotiate } = require('gatehouse-backend')
    const { defineRoutes } = require('gatehouse-server/routes')
    const { createClient } = require('gatehouse-client')
    console.log([buildGateway, buildRelay, negotiate, defineRoutes, createClient].map((each) => typeof each).join())`
  )
  t.equal(output, Array(5).fill('function').join())
})

t.test('gatehouse-client can be imported and created on a server without side effects', async (t) => {
  const output = runProgram(
    'import.mjs',
    `const before = new Set(Reflect.ownKeys(globalThis))
    const { createClient } = await import('gatehouse-client')
    const { createBuildingClient } = await import('gatehouse-client/buildings')
    createClient({ baseUrl: 'http://127.0.0.1:1' })
    createBuildingClient({ baseUrl: 'http://127.0.0.1:1' })
    const resources = process.getActiveResourcesInfo().filter((name) => /Timeout|TCP|TLS|Request/.test(name))
    console.log(JSON.stringify([Reflect.ownKeys(globalThis).filter((key) => !before.has(key)).map(String), resources]))`
  )
  t.same(JSON.parse(output), [[], []])
})

t.test('a relay of the package accepts what gatehouse-backend publishes, and stops with 0', async (t) => {
  const port = await freePort()
  const relay = await startChild(t, bin, ['relay'], {
    PATH: environment.path,
    RELAY_PORT: `${port}`,
    RELAY_WORKERS: '2',
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: SECRET
  })
  await relay.waitForLine(/listening/, PATIENCE_MS)
  const output = runProgram(
    'publish.mjs',
    `import { createPublisher } from 'gatehouse-backend'
    const publisher = createPublisher({ url: 'http://127.0.0.1:${port}/api', apiKey: '${SECRET}' })
    publisher.publish('floor:1', { type: 'position-batch', data: [] })
    await publisher.close()
    console.log(JSON.stringify(publisher.counts()))`
  )
  t.match(JSON.parse(output), { published: 1, failed: 0, dropped: 0 })
  relay.signal('SIGTERM')
  t.same(await relay.exited, { code: 0, signal: null })
})

t.test('SIGTERM to npx stops the gateway that it started', async (t) => {
  const npx = await startChild(t, 'npx', ['--prefix', folder, 'gatehouse', 'gateway'], {
    PATH: environment.path,
    HOME: folder,
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: 'http://127.0.0.1:1',
    API_SECRET,
    AUDIT_LOG_FILE: join(folder, 'audit.jsonl')
  })
  await npx.waitForLine(/listening/, PATIENCE_MS)
  npx.signal('SIGTERM')
  // Settles when the output of the server has ended too.
  await npx.exited
  t.match(npx.stdout, /"msg":"stopped"/)
})
