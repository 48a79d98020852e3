import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { PLAIN_PUBLICATION } from '../../src/relay/core/publish/publish.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { freePort, LOOPBACK } from '../helper/free-port.js'
import { redisProgram } from '../helper/redis.js'
import { Delivered, WITH_HISTORY } from '../relay/engine/contract.js'
import { redisEngine } from '../relay/engine/redis-fixture.js'
import { DocumentedShell } from './command-blocks.js'

const readPage = (name: string): string => readFileSync(join(ROOT, 'docs/how-to', name), 'utf8')

/** All code blocks of a page, also those in lists, without their indentation. */
const codeBlocks = (page: string): string[] =>
  [...page.matchAll(/^( *)```(?:sh)?\n(.*?)^\1```$/gms)].map(([, indentation = '', text = '']) =>
    text.replaceAll(new RegExp(`^${indentation}`, 'gm'), '')
  )

const blockWith = (page: string, text: string): string => {
  const block = codeBlocks(page).find((each) => each.includes(text))
  if (block === undefined) throw new Error(`no code block with ${text}`)
  return block
}

t.test('the commands of the backup page save and restore the configuration', async (t) => {
  const root = t.testdir()
  const secret = join(root, 'etc/gatehouse/api_secret')
  mkdirSync(join(root, 'etc/gatehouse'), { recursive: true })
  writeFileSync(secret, 'the secret', { mode: 0o600 })
  const page = readPage('backup-and-restore.md')
  const shell = new DocumentedShell(t, root, { PATH: environment.path })
  const run = (commands: string): Promise<string> =>
    shell.run(commands.replaceAll('/var/', `${root}/var/`).replaceAll('-C /', `-C ${root}/`))

  await run(blockWith(page, 'tar -czf'))
  rmSync(secret)
  await run(blockWith(page, 'tar -xzf'))

  t.equal(readFileSync(secret, 'utf8'), 'the secret')
  t.equal(statSync(secret).mode & 0o777, 0o600)
})

t.test('the configuration of the page about high availability works', async (t) => {
  const page = readPage('redis-high-availability.md')
  const folder = t.testdir()
  const masterPort = await freePort()
  const fillIn = (text: string): string =>
    text
      .replaceAll('<password of the sentinels>', 'of-sentinels')
      .replaceAll('<password>', 'of-servers')
      .replaceAll('<address of the master> 6379', `${LOOPBACK} ${masterPort}`)
      .replaceAll('0.0.0.0', LOOPBACK)
  const start = async (t: Test, name: string, port: number, lines: string, ...args: readonly string[]) => {
    mkdirSync(join(folder, name))
    const file = join(folder, name, 'server.conf')
    // The last value of a repeated directive is used.
    writeFileSync(file, `${fillIn(lines)}\nport ${port}\ndir ${join(folder, name)}\n`)
    await startChild(t, redisProgram(), [file, ...args], { PATH: environment.path })
  }
  const serverLines = blockWith(page, 'min-replicas-to-write')
  await start(t, 'master', masterPort, serverLines)
  await start(t, 'replica', await freePort(), `${serverLines}\nreplicaof <address of the master> 6379\n`)
  const sentinelPorts = [await freePort(), await freePort(), await freePort()]
  for (const [index, port] of sentinelPorts.entries())
    await start(t, `sentinel-${index}`, port, blockWith(page, 'sentinel monitor'), '--sentinel')
  const url = fillIn(blockWith(page, 'REDIS_URL='))
    .trim()
    .replace('REDIS_URL=', '')
    .replace('s1:26379,s2:26379,s3:26379', sentinelPorts.map((port) => `${LOOPBACK}:${port}`).join(','))

  const { broker } = redisEngine(t, url, { startTimeoutMs: 90_000 })
  await broker.start(new Delivered())
  const publication = { ...PLAIN_PUBLICATION, data: '1' }
  const { offset } = await eventually(async () => broker.publish('ns:1', publication, WITH_HISTORY))
  t.equal(offset, 1)
})
