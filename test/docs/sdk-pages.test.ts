import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { prepareJavaSdk } from '../../scripts/lib/java-sdk.js'
import { preparePythonSdk } from '../../scripts/lib/python-sdk.js'
import { ROOT } from '../../scripts/lib/root.js'
import { java, maven, missingServices, thisMachine } from '../../scripts/lib/services.js'
import { negotiate } from '../../src/backend/negotiate.js'
import { urlOf } from '../helper/address.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { startRelay } from '../helper/relay.js'
import { HMAC_SECRET } from '../helper/relay-rules.js'
import { startTcpProxy } from '../helper/tcp-proxy.js'

// The programs of docs/how-to/sdks.md run against a relay whose connection is lost once.

const NAMESPACE = {
  name: 'chat',
  allow_subscribe_for_client: true,
  history_size: 10,
  history_ttl: '60s',
  force_recovery: true
}

const APP_TOKEN = 'token-of-the-app'
/** Starting an interpreter may take long on a busy machine. */
const WITHIN_MS = 100_000

const PAGE = readFileSync(join(ROOT, 'docs/how-to/sdks.md'), 'utf8')

/** The first block of code in this language. */
const programOf = (language: string): string => {
  const [, program] = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(PAGE) ?? []
  if (program === undefined) throw new Error(`no ${language} in the page of SDKs`)
  return program
}

/** A backend with `/api/negotiate`, which names an address through the proxy. */
const startNegotiation = async (t: Test, port: number): Promise<string> => {
  const url = `ws://127.0.0.1:${port}/connection/websocket`
  const server = createServer(({ headers }, response) => {
    const isSignedIn = headers.authorization === `Bearer ${APP_TOKEN}`
    response.writeHead(isSignedIn ? 200 : 401, { 'content-type': 'application/json' })
    response.end(isSignedIn ? JSON.stringify(negotiate({ user: '42', url, secret: HMAC_SECRET })) : '{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return `${urlOf(server)}/api/negotiate`
}

const runProgram = async (t: Test, command: string, args: readonly string[]): Promise<void> => {
  const relay = await startRelay(t, { channel: { namespaces: [NAMESPACE] } })
  const proxy = await startTcpProxy(t, relay.port)
  const program = await startChild(t, command, args, {
    PATH: environment.path,
    NEGOTIATE_URL: await startNegotiation(t, proxy.port),
    APP_TOKEN,
    CHANNEL: 'chat:1'
  })
  const until = (pattern: RegExp): Promise<string> => program.waitForLine(pattern, WITHIN_MS)

  await until(/^connected/)
  await eventually(async () => JSON.parse((await relay.api('channels', {})).body).result.channels['chat:1'])
  await relay.publish('chat:1', { n: 1 })
  await until(/^publication \{"n":1\}/)

  const reconnect = proxy.block('GET /connection/websocket')
  await until(/^connecting 1 /)
  await relay.publish('chat:1', { n: 2 })
  reconnect()
  await until(/^publication \{"n":2\}/)
  t.notMatch(program.stdout, 'publications are missing')
}

t.test('the JavaScript program of the docs receives publications, also after a lost connection', async (t) => {
  // Inside the project, so that its imports are found.
  const folder = t.testdir()
  const file = join(folder, 'receive.mjs')
  writeFileSync(file, programOf('js'))
  await runProgram(t, process.execPath, [file])
})

const machine = thisMachine(environment.all)

t.test('the Python program of the docs receives publications, also after a lost connection', async (t) => {
  const python = await preparePythonSdk('0.7.0', machine, () => undefined)
  await runProgram(t, python, ['-c', programOf('python')])
})

const missing = missingServices([java, maven], machine).map(({ name }) => name)
// Under CI the test fails instead: `npm test` has installed them.
const skip = missing.length > 0 && environment.all.CI !== 'true' ? `missing: ${missing.join(', ')}` : false

t.test('the Java program of the docs receives publications, also after a lost connection', { skip }, async (t) => {
  const file = join(t.testdir(), 'Receive.java')
  writeFileSync(file, programOf('java'))
  await runProgram(t, machine.find('java') ?? 'java', ['-cp', join(prepareJavaSdk(machine), '*'), file])
})
