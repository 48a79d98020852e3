import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { thisMachine } from '../../../scripts/lib/services.js'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { type Child, startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { redisProgram } from '../../helper/redis.js'
import { required } from '../../helper/required.js'
import { ALL, Delivered, optionsOf } from '../../relay/engine/contract.js'
import { redisEngine } from '../../relay/engine/redis-fixture.js'
import { commandBlocks, DocumentedShell } from './command-blocks.js'

const PAGE = readFileSync(join(ROOT, 'docs/how-to/redis-high-availability.md'), 'utf8')

/** The block below a heading that contains a text. */
const blockOf = (heading: string, text: string): string => {
  const section = PAGE.split(/^(?=##)/m).find((each) => each.startsWith(heading)) ?? ''
  return required(commandBlocks(section).find(({ commands }) => commands.includes(text))).commands
}

const VARIABLES = blockOf('## Set up Sentinel', 'master=')
const SENTINEL = blockOf('### Sentinels', 'sentinel monitor')
const ADDRESS = blockOf('### Gateway and relay', 'redis+sentinel')
const PLANNED_FAILOVER = blockOf('## Planned failover', 'CLIENT PAUSE')

const PASSWORD = 'a-password'

/** Three machines with addresses of their own on the loopback interface. */
const MACHINES = ['10.0.0.11', '10.0.0.12', '10.0.0.13'] as const
const here = (address: string): string => address.replace('10.0.0.', '127.1.0.')

/** A folder in place of the file system of a machine. Commands of the page that need root do nothing. */
const startMachine = async (
  t: Test,
  address: string,
  redisBlock: string | undefined,
  ports: readonly [number, number]
) => {
  const root = join(t.testdirName, address)
  for (const folder of ['bin', 'etc/redis', 'etc/gatehouse', 'server', 'sentinel'])
    mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, 'etc/redis/password'), PASSWORD)
  for (const name of ['chown', 'systemctl']) writeFileSync(join(root, 'bin', name), '#!/bin/sh\n', { mode: 0o755 })
  const machine = thisMachine({ PATH: environment.path })
  const cli = required(machine.find('redis-cli') ?? machine.find('valkey-cli'))
  writeFileSync(join(root, 'bin/redis-cli'), `#!/bin/sh\nexec '${cli}' -p ${ports[0]} "$@"\n`, { mode: 0o755 })
  const shell = new DocumentedShell(t, root, { PATH: `${join(root, 'bin')}:${environment.path}` })
  const run = (commands: string, folder = ''): Promise<string> =>
    shell.run(
      MACHINES.reduce((text, each) => text.replaceAll(each, here(each)), commands)
        .replaceAll('/var/lib/redis', join(root, folder))
        .replaceAll('/etc/', `${root}/etc/`)
        .replaceAll('26379', String(ports[1]))
        .replaceAll(/\b6379\b/g, String(ports[0]))
    )
  await run(VARIABLES.replace(/^own=\S+/m, `own=${address}`))
  const start = (file: string, ...args: readonly string[]): Promise<Child> =>
    startChild(t, redisProgram(), [join(root, 'etc/redis', file), ...args], { PATH: environment.path })
  let server: Child | undefined
  if (redisBlock !== undefined) {
    await run(redisBlock, 'server')
    // The default delay before a replication without a disk file is 5 s.
    server = await start('redis.conf', '--repl-diskless-sync-delay', '0')
  }
  await run(SENTINEL, 'sentinel')
  await start('sentinel.conf', '--sentinel')
  return { root, run, server }
}

/** Keeps every publication of a test. */
const COMPLETE_HISTORY = optionsOf({ history_size: 100_000, history_ttl: '3600s', history_meta_ttl: '3600s' })

const SETUPS = [
  { heading: '### Three Redis servers', servers: 3 },
  { heading: '### Two Redis servers', servers: 2 }
] as const

for (const { heading, servers } of SETUPS) {
  t.test(`the documented setup with ${servers} Redis servers`, async (t) => {
    t.testdir()
    const ports = [await freePort(), await freePort()] as const
    const redisBlock = blockOf(heading, 'redis.conf')
    const machines = await Promise.all(
      MACHINES.map((address, index) => startMachine(t, address, index < servers ? redisBlock : undefined, ports))
    )
    // The last machine has no server in one of the setups.
    const { run, root } = required(machines.at(-1))
    await run(ADDRESS)
    const url = readFileSync(join(root, 'etc/gatehouse/redis_url'), 'utf8').trim()
    const sentinel = new Redis({ host: here(MACHINES[2]), port: ports[1], password: PASSWORD, retryStrategy: () => 50 })
    sentinel.on('error', () => undefined)
    t.teardown(() => sentinel.disconnect())
    const ask = async (command: string): Promise<string> =>
      JSON.stringify(await sentinel.call('SENTINEL', command, 'gatehouse'))
    const masterAddress = async (): Promise<string> => JSON.parse(await ask('GET-MASTER-ADDR-BY-NAME'))[0]
    /** Waits until the sentinels know each other and all replicas, which they may promote. */
    const settled = async (): Promise<void> => {
      const isSettled = async (): Promise<boolean> =>
        (await ask('MASTER')).includes('"num-other-sentinels","2"') &&
        [...(await ask('REPLICAS')).matchAll(/"flags","slave",[^\]]*"master-link-status","ok"/g)].length === servers - 1
      await eventually(isSettled, { label: 'all replicas are known' })
    }
    await settled()
    const { broker, engine, history } = redisEngine(t, url, { startTimeoutMs: 90_000 })
    await broker.start(new Delivered())
    const publish = () => broker.publish('ns:1', { ...PLAIN_PUBLICATION, data: '1' }, COMPLETE_HISTORY)
    await eventually(publish)

    t.test('a planned failover loses no acknowledged publication', async (t) => {
      const acknowledged = [await publish()]
      let isSwitched = false
      const commands = servers === 2 ? PLANNED_FAILOVER.replace(` ${MACHINES[2]}`, '') : PLANNED_FAILOVER
      // As the page says: after another reply nothing is promoted. On a busy machine Sentinel may know no replica at first.
      const switching = eventually(async () => /OK\s*$/.test(await run(commands)), { label: 'Sentinel replies OK' })
        .then(() => eventually(async () => (await masterAddress()) !== here(MACHINES[0])))
        .finally(() => {
          isSwitched = true
        })
      let longestMs = 0
      while (!isSwitched) {
        const since = performance.now()
        acknowledged.push(await eventually(publish))
        longestMs = Math.max(longestMs, performance.now() - since)
        // Without a pause, the publications take the time that the sentinels need on a small machine.
        await setTimeout(10)
      }
      await switching
      acknowledged.push(await eventually(publish))
      t.comment(`a publication waited for ${Math.round(longestMs)} ms at most`)
      await eventually(() => engine.isReady)
      t.same(new Set(acknowledged.map(({ epoch }) => epoch)).size, 1, 'the epoch is kept')
      // A publication without a reply may have been stored, so offsets may be missing between two acknowledged ones.
      const offsets = acknowledged.map(({ offset }) => offset)
      t.same(
        offsets,
        [...new Set(offsets)].toSorted((a, b) => a - b),
        'offsets increase'
      )
      const { publications } = await eventually(() => history.read('ns:1', ALL, COMPLETE_HISTORY))
      const stored = new Set(publications.map(({ offset }) => offset))
      t.same(
        offsets.filter((offset) => !stored.has(offset)),
        [],
        'no acknowledged publication is lost'
      )
    })

    t.test('publications are accepted again without the lost master', async (t) => {
      await settled()
      const lost = await masterAddress()
      machines[MACHINES.findIndex((each) => here(each) === lost)]?.server?.signal('SIGKILL')
      const killedAt = performance.now()
      await eventually(async () => (await masterAddress()) !== lost)
      t.ok((await eventually(publish)).offset > 0)
      t.comment(`publications were acknowledged after ${Math.round(performance.now() - killedAt)} ms`)
    })
  })
}
