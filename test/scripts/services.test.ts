import { t } from 'tap'
import { type Machine, prepareServices, type Service, ServicesMissing } from '../../scripts/services.js'

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

const prepare = (on: Machine): string[] => {
  const said: string[] = []
  prepareServices([redis], on, (line) => said.push(line))
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
    t.throws(() => prepare(machine([], { mayInstall: () => true })), { message: /installed, but not on the PATH/ })
  })
})
