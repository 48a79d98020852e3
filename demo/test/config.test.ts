import t from 'tap'
import { SettingsError } from '../../src/shared/env.js'
import { startProgram } from '../../test/helper/program.js'
import { demoConfig } from '../backend/config.js'

const GOOD = {
  DEMO_PASSWORD: 'a-password',
  TOKEN_SECRET: 'a-secret-of-more-than-32-characters',
  REALTIME_PUBLISH_URL: 'http://127.0.0.1:8100/api',
  REALTIME_API_KEY: 'key',
  REALTIME_CLIENT_URL: 'ws://localhost:8100/connection/websocket',
  REALTIME_HMAC_SECRET: 'secret'
}

const errorsOf = (env: Readonly<Record<string, string>>): readonly string[] => {
  try {
    demoConfig(env)
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.errors
    throw error
  }
}

t.test("the settings of the demo's backend", async (t) => {
  t.match(demoConfig(GOOD), {
    listen: { host: '127.0.0.1', port: 4000 },
    trustedProxies: [],
    simulator: true,
    databaseUrl: null
  })
  t.equal(demoConfig({ ...GOOD, DEMO_SIMULATOR: 'off' }).simulator, false)
  t.equal(demoConfig({ ...GOOD, DEMO_BCRYPT_ROUNDS: '12' }).bcryptRounds, 12)

  t.test('the secrets and addresses are required', async (t) => {
    t.same(
      errorsOf({}).toSorted(),
      Object.keys(GOOD)
        .map((name) => `${name} is required`)
        .toSorted()
    )
  })

  const BAD: readonly (readonly [string, string, string])[] = [
    ['TOKEN_SECRET', 'short', 'TOKEN_SECRET must have at least 32 characters'],
    ['EXCHANGE_SECRET', 'short', 'EXCHANGE_SECRET must have at least 32 characters'],
    ['DEMO_PASSWORD', 'short', 'DEMO_PASSWORD must have at least 8 characters'],
    [
      'REALTIME_CLIENT_URL',
      'http://localhost:8100',
      'REALTIME_CLIENT_URL must be an address such as ws://localhost:8100/connection/websocket'
    ],
    ['DEMO_SIMULATOR', 'maybe', 'DEMO_SIMULATOR must be one of on, off, not "maybe"']
  ]
  for (const [name, value, message] of BAD) {
    t.test(`an invalid ${name} is reported by name`, async (t) => {
      t.same(errorsOf({ ...GOOD, [name]: value }), [message])
    })
  }
})

t.test('the program prints one line per error and exits with 1', async (t) => {
  const { REALTIME_API_KEY: _key, DEMO_PASSWORD: _password, ...rest } = GOOD
  const program = await startProgram(t, 'dist/demo/backend/main.js', rest)

  t.same(await program.exited, { code: 1, signal: null })
  t.equal(program.stderr, 'backend: DEMO_PASSWORD is required\nbackend: REALTIME_API_KEY is required\n')
})
