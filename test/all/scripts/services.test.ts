import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Test as Tap, t } from 'tap'
import {
  type Machine,
  postgresql,
  prepareServices,
  redis,
  type Service,
  ServicesMissing,
  services,
  servicesFor,
  thisMachine,
  valkey
} from '../../../scripts/lib/services.js'

/** A machine with these programs and nothing else. */
const machine = (has: string[], more: Partial<Machine> = {}): Machine => ({
  env: {},
  find: (program) => (has.includes(program) ? `/bin/${program}` : undefined),
  canInstall: () => false,
  install: () => {},
  wait: async () => {},
  ...more
})

const prepare = async (on: Machine, required: readonly Service[] = [redis]): Promise<string[]> => {
  const lines: string[] = []
  await prepareServices(required, on, (line) => lines.push(line))
  return lines
}

t.test('prepareServices', async (t) => {
  t.test('prepareServices prefers the address in the variable to a program, and does not print it', async (t) => {
    const lines = await prepare(machine(['redis-server'], { env: { REDIS_URL: 'redis://:secret@host' } }))

    t.same(lines, ['Redis: from REDIS_URL'])
  })

  t.test('prepareServices treats an empty variable as unset', async (t) => {
    t.same(await prepare(machine(['redis-server'], { env: { REDIS_URL: '' } })), ['Redis: /bin/redis-server'])
  })

  t.test('prepareServices accepts any of the programs', async (t) => {
    t.same(await prepare(machine(['valkey-server'])), ['Redis: /bin/valkey-server'])
  })

  t.test('prepareServices announces and installs missing services where it can', async (t) => {
    const has: string[] = []

    const lines = await prepare(machine(has, { canInstall: () => true, install: (packages) => has.push(...packages) }))

    t.same(lines, [
      'Missing: Redis',
      'Installing Debian packages as root: apt-get update && apt-get install -y --no-install-recommends redis-server',
      'Press Ctrl-C within 10 s to stop. With CI=true there is no waiting.',
      'Redis: /bin/redis-server'
    ])
  })

  t.test('prepareServices waits between the announcement and the installation, except with CI=true', async (t) => {
    for (const [env, expected] of [
      [{}, ['wait', 'install']],
      [{ CI: 'false' }, ['wait', 'install']],
      [{ CI: 'true' }, ['install']]
    ] as const) {
      const has: string[] = []
      const steps: string[] = []
      const install = (packages: readonly string[]): void => {
        steps.push('install')
        has.push(...packages)
      }
      const wait = async (): Promise<void> => void steps.push('wait')
      await prepare(machine(has, { env, canInstall: () => true, install, wait }))
      t.same(steps, expected)
    }
  })

  t.test(
    'prepareServices names the service, the variable and the install command where it cannot install',
    async (t) => {
      await t.rejects(prepare(machine([])), {
        constructor: ServicesMissing,
        message:
          /Redis is missing: set REDIS_URL[\s\S]* sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server$/
      })
    }
  )

  t.test('prepareServices reports the error of a failed installation', async (t) => {
    const install = (): void => {
      throw new Error('no network')
    }

    await t.rejects(prepare(machine([], { canInstall: () => true, install })), {
      constructor: ServicesMissing,
      message: /^no network\nRedis is missing/
    })
  })

  t.test('prepareServices fails when the program is still missing after the installation', async (t) => {
    await t.rejects(prepare(machine([], { canInstall: () => true })), { message: /^Installed, but not found/ })
  })

  t.test('prepareServices names no variable for a tool without one', async (t) => {
    const nginx = { name: 'nginx', programs: ['nginx'], aptPackage: 'nginx' }

    await t.rejects(prepare(machine([]), [nginx]), { message: /^nginx is missing: put nginx on the PATH\.\n/ })
    t.same(await prepare(machine(['nginx']), [nginx]), ['nginx: /bin/nginx'])
  })

  t.test('prepareServices skips a missing optional service that it cannot install, except with CI=true', async (t) => {
    const optional: Service = { name: 'Java', programs: ['javac'], aptPackage: 'jdk', isOptional: true }
    const has: string[] = []

    t.same(await prepare(machine([]), [optional]), ['Java: missing, tests are skipped'])
    await t.rejects(prepare(machine([], { env: { CI: 'true' } }), [optional]), { message: /^Java is missing/ })
    await prepare(machine(has, { canInstall: () => true, install: () => void has.push('javac') }), [optional])
    t.same(has, ['javac'], 'a missing service is installed if possible')
  })

  t.test("prepareServices finds a program in Debian's folder of versions", async (t) => {
    const find = (program: string, versionsIn?: string): string => `${versionsIn}/15/bin/${program}`

    t.same(await prepare(machine([], { find }), [postgresql]), ['PostgreSQL: /usr/lib/postgresql/15/bin/postgres'])
  })

  t.test('prepareServices installs all missing services with one command', async (t) => {
    const has: string[] = []
    const installed: (readonly string[])[] = []
    const install = (packages: readonly string[]): void => {
      installed.push(packages)
      has.push(...services.flatMap(({ programs }) => programs))
    }
    const lines = await prepare(machine(has, { canInstall: () => true, install }), services)

    t.match(lines[0], /^Missing: Redis, PostgreSQL, Chromium, Firefox, /)
    t.match(
      lines[1],
      / install -y --no-install-recommends redis-server postgresql chromium-headless-shell firefox-esr /
    )
    t.same(installed, [services.map(({ aptPackage }) => aptPackage)])
    t.same(lines.slice(3, 6), [
      'Redis: /bin/redis-server',
      'PostgreSQL: /bin/postgres',
      'Chromium: /bin/chromium-headless-shell'
    ])
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

  t.test('thisMachine finds a program of the newest version', async (t) => {
    const folder = folderWith(t, '9.6/bin/postgres', '15/bin/postgres', '16/bin/postgres')

    t.equal(thisMachine({ PATH: '' }).find('postgres', folder), join(folder, '16/bin/postgres'))
  })

  t.test('thisMachine skips a version without the program', async (t) => {
    const folder = folderWith(t, '15/bin/postgres', '16/bin/psql')

    t.equal(thisMachine({ PATH: '' }).find('postgres', folder), join(folder, '15/bin/postgres'))
  })

  t.test('thisMachine prefers a program on the PATH to any version', async (t) => {
    const folder = folderWith(t, 'here/postgres', 'versions/16/bin/postgres')

    t.equal(
      thisMachine({ PATH: join(folder, 'here') }).find('postgres', join(folder, 'versions')),
      join(folder, 'here/postgres')
    )
  })

  t.test('thisMachine finds nothing if no version is installed', async (t) => {
    t.equal(thisMachine({ PATH: '' }).find('postgres', join(t.testdir(), 'versions')), undefined)
    t.equal(thisMachine({}).find('postgres'), undefined)
  })
})

t.test('the tests of the product need Redis, PostgreSQL and Chromium only', async (t) => {
  const names = (files: readonly string[], isValkey = false) => servicesFor(files, isValkey).map(({ name }) => name)
  t.same(names(['test/relay/config.test.ts']), ['Redis', 'PostgreSQL', 'Chromium'])
  t.same(names(['test/relay/config.test.ts'], true), [valkey.name, 'PostgreSQL', 'Chromium'])
  t.ok(names(['test/all/deploy/nginx.test.ts']).includes('nginx'))
})
