import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Test as Tap, t } from 'tap'
import {
  type Machine,
  postgresql,
  prepareServices,
  type Service,
  ServicesMissing,
  services,
  thisMachine
} from '../../scripts/services.js'

const redis: Service = {
  name: 'Redis',
  variable: 'REDIS_URL',
  programs: ['redis-server', 'valkey-server'],
  aptPackage: 'redis-server'
}

/** A machine with these programs and nothing else. */
const machine = (has: string[], more: Partial<Machine> = {}): Machine => ({
  env: {},
  find: (program) => (has.includes(program) ? `/bin/${program}` : undefined),
  mayInstall: () => false,
  install: () => {},
  ...more
})

const prepare = (on: Machine, wanted: readonly Service[] = [redis]): string[] => {
  const said: string[] = []
  prepareServices(wanted, on, (line) => said.push(line))
  return said
}

t.test('prepareServices', async (t) => {
  t.test('takes the address in the variable before a program, and does not print it', async (t) => {
    const said = prepare(machine(['redis-server'], { env: { REDIS_URL: 'redis://:secret@host' } }))

    t.same(said, ['Redis: the one that REDIS_URL names'])
  })

  t.test('takes an empty variable for an unset one', async (t) => {
    t.same(prepare(machine(['redis-server'], { env: { REDIS_URL: '' } })), ['Redis: /bin/redis-server'])
  })

  t.test('takes any of the programs', async (t) => {
    t.same(prepare(machine(['valkey-server'])), ['Redis: /bin/valkey-server'])
  })

  t.test('installs what is missing where it may, and says so before', async (t) => {
    const has: string[] = []

    const said = prepare(machine(has, { mayInstall: () => true, install: (packages) => has.push(...packages) }))

    t.same(said, [
      'Redis: not here yet, so: apt-get update && apt-get install -y --no-install-recommends redis-server',
      'Redis: /bin/redis-server'
    ])
  })

  t.test('names the service, the variable and the install line where it may not install', async (t) => {
    t.throws(() => prepare(machine([])), {
      constructor: ServicesMissing,
      message:
        /Redis is missing: set REDIS_URL[\s\S]* sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server$/
    })
  })

  t.test('passes on what the failed installation said', async (t) => {
    const install = (): void => {
      throw new Error('no network')
    }

    t.throws(() => prepare(machine([], { mayInstall: () => true, install })), {
      constructor: ServicesMissing,
      message: /^no network\nRedis is missing/
    })
  })

  t.test('fails when the program is still missing after the installation', async (t) => {
    t.throws(() => prepare(machine([], { mayInstall: () => true })), { message: /^installed, and still not found/ })
  })

  t.test('names no variable for a tool that has none', async (t) => {
    const nginx = { name: 'nginx', programs: ['nginx'], aptPackage: 'nginx' }

    t.throws(() => prepare(machine([]), [nginx]), { message: /^nginx is missing: put nginx on the PATH\.\n/ })
    t.same(prepare(machine(['nginx']), [nginx]), ['nginx: /bin/nginx'])
  })

  t.test('takes a program from where Debian keeps its versions', async (t) => {
    const find = (program: string, versionsIn?: string): string => `${versionsIn}/15/bin/${program}`

    t.same(prepare(machine([], { find }), [postgresql]), ['PostgreSQL: /usr/lib/postgresql/15/bin/postgres'])
  })

  t.test('installs all that is missing with one line', async (t) => {
    const has: string[] = []
    const asked: (readonly string[])[] = []
    const install = (packages: readonly string[]): void => {
      asked.push(packages)
      has.push(...services.flatMap(({ programs }) => programs))
    }
    const said = prepare(machine(has, { mayInstall: () => true, install }), services)

    t.match(
      said[0],
      /^Redis, PostgreSQL, Chromium, .* install -y --no-install-recommends redis-server postgresql chromium /
    )
    t.same(asked, [services.map(({ aptPackage }) => aptPackage)])
    t.same(said.slice(1, 4), ['Redis: /bin/redis-server', 'PostgreSQL: /bin/postgres', 'Chromium: /bin/chromium'])
  })
})

t.test('thisMachine', async (t) => {
  /** A folder with these programs. */
  const folderWith = (t: Tap, ...files: string[]): string => {
    const folder = t.testdir()
    for (const file of files) {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), '#!/bin/sh\n', { mode: 0o755 })
    }
    return folder
  }

  t.test('finds a program of the newest version', async (t) => {
    const folder = folderWith(t, '9.6/bin/postgres', '15/bin/postgres', '16/bin/postgres')

    t.equal(thisMachine({ PATH: '' }).find('postgres', folder), join(folder, '16/bin/postgres'))
  })

  t.test('passes over a version that does not have the program', async (t) => {
    const folder = folderWith(t, '15/bin/postgres', '16/bin/psql')

    t.equal(thisMachine({ PATH: '' }).find('postgres', folder), join(folder, '15/bin/postgres'))
  })

  t.test('takes a program on the PATH before any version', async (t) => {
    const folder = folderWith(t, 'here/postgres', 'versions/16/bin/postgres')

    t.equal(
      thisMachine({ PATH: join(folder, 'here') }).find('postgres', join(folder, 'versions')),
      join(folder, 'here/postgres')
    )
  })

  t.test('finds nothing where there is no version', async (t) => {
    t.equal(thisMachine({ PATH: '' }).find('postgres', join(t.testdir(), 'versions')), undefined)
    t.equal(thisMachine({}).find('postgres'), undefined)
  })
})
