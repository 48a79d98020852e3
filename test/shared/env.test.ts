import { join } from 'node:path'
import t from 'tap'
import { type Environment, readSettings, type Setting, type Settings, SettingsError } from '../../src/shared/env.js'
import { byteSize, flag, integer, list, oneOf, redisUrl, secret, text } from '../../src/shared/setting-kinds.js'

const MIB = 1024 * 1024
const ABOUT = { about: 'for a test', fallback: 'the fallback' }

const read = <T extends Settings>(settings: T, environment: Environment) => {
  const errors: string[] = []
  return { values: readSettings(settings, environment, errors), errors }
}

/** Reads one setting with the name NAME. */
const readOne = (setting: Setting, environment: Environment) => {
  const { values, errors } = read({ NAME: setting }, environment)
  return { value: values.NAME, errors }
}

interface Kind {
  readonly title: string
  readonly setting: Setting
  readonly valid: readonly (readonly [text: string, value: unknown])[]
  readonly invalid: readonly string[]
}

const same = (...texts: readonly string[]): [string, string][] => texts.map((text) => [text, text])
const only = (...texts: readonly string[]): [string, string[]][] => texts.map((text) => [text, [text]])

// Texts that would end a CSP directive, start another, or allow more than one host.
const NO_CSP_HOSTS = [
  '*',
  'https://*',
  '*:443',
  '*.',
  '*.*.example.com',
  'cdn.*.com',
  'cdn.example.com;script-src *',
  'cdn.example.com; script-src *',
  'cdn.example.com\nx-injected: yes',
  'cdn.example.com\r\n\r\n<script>',
  'cdn.example.com\tother.example.com',
  'cdn.example.com other.example.com',
  'cdn.example.com\u00a0other.example.com',
  'cdn.example.com\u2028other.example.com',
  "'unsafe-eval'",
  "'self'",
  '"cdn.example.com"',
  '`cdn.example.com`',
  'data:',
  'blob:',
  'https:',
  'javascript://cdn.example.com',
  'file://cdn.example.com',
  'cdn.example.com/',
  'cdn.example.com/path',
  'cdn.example.com?query',
  'cdn.example.com#fragment',
  'user@cdn.example.com',
  'cdn.example.com%0aother',
  'cdn..example.com',
  '.example.com',
  'example.com.',
  'cdn.example.com:',
  'cdn.example.com:port',
  'cdn.example.com:123456',
  'bücher.example',
  '[::1',
  '[]',
  '[1.2.3.4]',
  '[::1]]'
]

const KINDS: readonly Kind[] = [
  {
    title: 'a whole number',
    setting: integer(1, 65535, ABOUT),
    valid: [
      ['1', 1],
      ['8080', 8080],
      ['65535', 65535],
      ['007', 7],
      [' 80\n', 80]
    ],
    invalid: [
      '0',
      '65536',
      '-1',
      '+1',
      '1.5',
      '1e3',
      '0x50',
      'http',
      '80 81',
      '٨٠',
      'NaN',
      '1'.repeat(16),
      '1'.repeat(400)
    ]
  },
  {
    title: 'a size',
    setting: byteSize(64 * MIB, ABOUT),
    valid: [
      ['1', 1],
      ['1000', 1000],
      ['4KiB', 4096],
      ['64MiB', 64 * MIB],
      ['2 MiB', 2 * MIB]
    ],
    invalid: ['0', '0KiB', '65MiB', '67108865', '-1', '1.5MiB', '1MB', '1K', '1 GiB', '1mib', 'MiB', '1  MiB', 'all']
  },
  {
    title: 'a flag',
    setting: flag(ABOUT),
    valid: [
      ['true', true],
      ['false', false]
    ],
    invalid: ['TRUE', 'False', '1', '0', 'yes', 'no', 'on', 'off', 'truetrue']
  },
  {
    title: 'a choice',
    setting: oneOf(['plain', 'signed'], ABOUT),
    valid: same('plain', 'signed'),
    invalid: ['Plain', 'plain signed', 'plain,signed', 'other', 'constructor', '__proto__']
  },
  { title: 'text', setting: text('text', ABOUT), valid: same('a', 'with spaces', '0', 'null'), invalid: [] },
  { title: 'a secret', setting: secret(ABOUT), valid: same('hunter2', 'with spaces', '"quoted"'), invalid: [] },
  {
    title: 'an http address',
    setting: text('http-url', ABOUT),
    valid: same('http://localhost', 'https://backend.example.com:8443/prefix/', 'http://[::1]:4000', 'HTTP://HOST'),
    invalid: [
      'localhost:4000',
      'backend',
      '/path',
      '//host',
      'ftp://host',
      'ws://host',
      'javascript:alert(1)',
      'http://',
      'http://user@host',
      'http://user:hunter2@host',
      'http://:hunter2@host',
      'http://host?query',
      'http://host?',
      'http://host#fragment',
      'http://host#',
      'http://host/a b',
      'http://ho\nst',
      'http://host:99999'
    ]
  },
  {
    title: 'a Redis address',
    setting: redisUrl(ABOUT),
    valid: same(
      'redis://localhost:6379',
      'rediss://user:hunter2@redis.example.com:6380/2',
      'redis://a,redis://b',
      'redis+sentinel://:hunter2@a,b/mymaster/2'
    ),
    invalid: ['localhost:6379', 'http://localhost:6379', 'redis', 'redis//host', 'redis+sentinel://:hunter2@a']
  },
  {
    title: 'a PostgreSQL address',
    setting: text('postgres-url', ABOUT),
    valid: same('postgres://localhost/app', 'postgresql://user:hunter2@db.example.com:5432/app?sslmode=require'),
    invalid: ['localhost', 'mysql://localhost/app', 'redis://localhost', 'postgres']
  },
  {
    title: 'a list of origins',
    setting: list('origin', ABOUT),
    valid: [
      ...only('https://app.example.com', 'http://localhost:5173', 'HTTPS://App.Example.com', 'http://[::1]:3000'),
      ['https://a.example, https://b.example', ['https://a.example', 'https://b.example']]
    ],
    invalid: [
      '*',
      'null',
      'app.example.com',
      'https://app.example.com/',
      'https://app.example.com/path',
      'https://app.example.com:443',
      'https://*.example.com',
      'https://user@app.example.com',
      'wss://app.example.com',
      'https://a.example https://b.example',
      'https://a.example,b.example'
    ]
  },
  {
    title: 'a list of address ranges',
    setting: list('address-range', ABOUT),
    valid: [
      ...only('loopback', '10.0.0.0/8', '192.0.2.7', '::1', '2001:db8::/32', '0.0.0.0/0'),
      ['loopback,10.0.0.0/8', ['loopback', '10.0.0.0/8']]
    ],
    invalid: [
      'true',
      'false',
      '1',
      '2',
      '*',
      'all',
      'Loopback',
      'proxy.example.com',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/',
      '10.0.0.0/8/8',
      '10.0.0',
      '010.0.0.1',
      '256.0.0.1',
      '2001:db8::/129',
      '10.0.0.1:80',
      '[::1]',
      'loopback,true'
    ]
  },
  {
    title: 'a list of policy hosts',
    setting: list('csp-host', ABOUT),
    valid: [
      ...only('cdn.example.com', '*.example.com', 'https://cdn.example.com', 'localhost:8100', 'ws://localhost:*'),
      ...only('wss://*.example.com:443', 'CDN.example.com', '127.0.0.1', '[::1]:8100', 'xn--bcher-kva.example'),
      ['\n a.example ,b.example, \n', ['a.example', 'b.example']]
    ],
    invalid: [...NO_CSP_HOSTS, ...NO_CSP_HOSTS.map((host) => `cdn.example.com,${host}`)]
  },
  {
    title: 'a list',
    setting: list('text', ABOUT),
    valid: [
      ['a,b', ['a', 'b']],
      [' a , b ,', ['a', 'b']],
      [',,', []],
      ['a,a', ['a', 'a']]
    ],
    invalid: []
  }
]

/** Escaped for a test title, because some contain line breaks. */
const shown = (text: string): string => JSON.stringify(text.slice(0, 60)).replace(/[^ -~]/g, encodeURIComponent)

const literally = (text: string): string => text.replace(/[^A-Za-z0-9 ]/g, '\\$&')

for (const { title, setting, valid, invalid } of KINDS) {
  t.test(title, async (t) => {
    for (const [given, value] of valid) {
      t.test(`${title} can be ${shown(given)}`, async (t) => {
        t.same(readOne(setting, { NAME: given }), { value, errors: [] })
      })
    }

    for (const given of invalid) {
      t.test(`${title} cannot be ${shown(given)}`, async (t) => {
        const { value, errors } = readOne(setting, { NAME: given })

        t.equal(errors.length, 1)
        t.match(
          errors[0],
          new RegExp(`^NAME must be ${literally(setting.rule)}(?:, not "[^\\n]*")?(?:: [^\\n]*)?$`),
          'one line, by name'
        )
        t.equal(value, setting.fallback, 'the default is used')
      })
    }

    for (const [unset, state] of [
      [undefined, 'not set'],
      ['', 'empty'],
      [' \t\n', 'blank']
    ] as const) {
      t.test(`${title} has its default if the variable is ${state}`, async (t) => {
        t.same(readOne(setting, { NAME: unset }), { value: setting.fallback, errors: [] })
      })
    }
  })
}

t.test('error messages', async (t) => {
  t.test('an error message contains the given text', async (t) => {
    t.same(readOne(integer(1, 10, ABOUT), { NAME: 'eleven' }).errors, [
      'NAME must be a whole number from 1 to 10, not "eleven"'
    ])
  })

  t.test('an error message truncates a long text', async (t) => {
    const { errors } = readOne(flag(ABOUT), { NAME: 'x'.repeat(5000) })

    t.same(errors, [`NAME must be true or false, not "${'x'.repeat(100)}"`])
  })

  t.test('an error message is one line with any text', async (t) => {
    t.same(readOne(flag(ABOUT), { NAME: 'a\r\nAPI_SECRET must be' }).errors, [
      'NAME must be true or false, not "a\\r\\nAPI_SECRET must be"'
    ])
  })

  const HOLDING_PASSWORDS: readonly (readonly [title: string, setting: Setting, text: string])[] = [
    ['a Redis address', text('redis-url', ABOUT), 'http://:hunter2@host'],
    ['a PostgreSQL address', text('postgres-url', ABOUT), 'mysql://user:hunter2@host/name'],
    ['an http address', text('http-url', ABOUT), 'https://user:hunter2@host'],
    ['an http address with a query', text('http-url', ABOUT), 'https://host/?key=hunter2'],
    ['a secret', { ...secret(ABOUT), parse: () => null }, 'hunter2']
  ]
  for (const [title, setting, text] of HOLDING_PASSWORDS) {
    t.test(`an error message does not contain ${title}`, async (t) => {
      t.same(readOne(setting, { NAME: text }).errors, [`NAME must be ${setting.rule}`])
    })
  }
})

t.test('a setting from a file', async (t) => {
  t.test('a setting from a file has the content without the trailing line break', async (t) => {
    const folder = t.testdir({ unix: 'hunter2\n', windows: 'hunter2\r\n', bare: 'hunter2' })

    for (const name of ['unix', 'windows', 'bare']) {
      t.same(readOne(secret(ABOUT), { NAME_FILE: join(folder, name) }), { value: 'hunter2', errors: [] }, name)
    }
  })

  t.test('a setting from a file keeps inner line breaks', async (t) => {
    const folder = t.testdir({ pem: 'BEGIN\nAAAA\nEND\n' })

    t.equal(readOne(secret(ABOUT), { NAME_FILE: join(folder, 'pem') }).value, 'BEGIN\nAAAA\nEND')
  })

  t.test('a setting from a file is validated', async (t) => {
    const folder = t.testdir({ valid: '42\n', invalid: 'forty-two\n' })

    t.same(readOne(integer(1, 100, ABOUT), { NAME_FILE: join(folder, 'valid') }), { value: 42, errors: [] })
    t.same(readOne(integer(1, 100, ABOUT), { NAME_FILE: join(folder, 'invalid') }).errors, [
      'NAME must be a whole number from 1 to 100, not "forty-two"'
    ])
  })

  t.test('a setting from an empty file has its default', async (t) => {
    const folder = t.testdir({ empty: '\n' })

    t.same(readOne(secret(ABOUT), { NAME_FILE: join(folder, 'empty') }), { value: ABOUT.fallback, errors: [] })
  })

  t.test('the variable counts if the file name is empty', async (t) => {
    t.same(readOne(secret(ABOUT), { NAME: 'hunter2', NAME_FILE: '' }), { value: 'hunter2', errors: [] })
  })

  t.test('the file counts if the variable is empty', async (t) => {
    const folder = t.testdir({ file: 'hunter2' })

    t.equal(readOne(secret(ABOUT), { NAME: '', NAME_FILE: join(folder, 'file') }).value, 'hunter2')
  })

  t.test('a variable and a file for the same setting are an error', async (t) => {
    const folder = t.testdir({ file: 'hunter2' })

    t.same(readOne(secret(ABOUT), { NAME: 'hunter3', NAME_FILE: join(folder, 'file') }).errors, [
      'NAME and NAME_FILE must not both be set'
    ])
  })

  t.test('a missing file is an error', async (t) => {
    const file = join(t.testdir(), 'missing')
    const { value, errors } = readOne(secret(ABOUT), { NAME_FILE: file })

    t.same(errors, [`NAME_FILE must name a readable file (ENOENT): ${file}`])
    t.equal(value, ABOUT.fallback)
  })

  t.test('a folder instead of a file is an error', async (t) => {
    const folder = t.testdir()
    t.same(readOne(secret(ABOUT), { NAME_FILE: folder }).errors, [
      `NAME_FILE must name a readable file (EISDIR): ${folder}`
    ])
  })
})

t.test('readSettings', async (t) => {
  const SETTINGS = {
    PORT: integer(0, 65535, { about: 'port', fallback: 3000 }),
    SECRET: secret({ about: 'secret', fallback: null }),
    MODE: oneOf(['plain', 'signed'], { about: 'mode', fallback: 'plain' }),
    HOSTS: list('csp-host', { about: 'hosts' })
  }

  t.test('readSettings returns the defaults for an empty environment', async (t) => {
    t.same(read(SETTINGS, {}), { values: { PORT: 3000, SECRET: null, MODE: 'plain', HOSTS: [] }, errors: [] })
  })

  t.test('readSettings reads every setting and ignores other variables', async (t) => {
    const environment = { PORT: '80', SECRET: 'hunter2', MODE: 'signed', HOSTS: 'a.example', OTHER: 'x', PORTS: 'y' }

    t.same(read(SETTINGS, environment), {
      values: { PORT: 80, SECRET: 'hunter2', MODE: 'signed', HOSTS: ['a.example'] },
      errors: []
    })
  })

  t.test('readSettings reports all errors together, in the order of the table', async (t) => {
    const { errors } = read(SETTINGS, { HOSTS: '*', MODE: 'other', SECRET_FILE: '/nowhere', PORT: 'http' })

    t.same(
      errors.map((error) => error.split(' ', 1)[0]),
      ['PORT', 'SECRET_FILE', 'MODE', 'HOSTS']
    )
  })

  t.test('readSettings adds its errors to the given list', async (t) => {
    const errors = ['OTHER is wrong']

    readSettings(SETTINGS, { MODE: 'other' }, errors)

    t.same(errors, ['OTHER is wrong', 'MODE must be one of plain, signed, not "other"'])
  })
})

t.test('SettingsError has one line per error in its message', async (t) => {
  const { name, message, errors } = new SettingsError(['A is wrong', 'B is missing'])

  t.same(
    { name, message, errors },
    {
      name: 'SettingsError',
      message: 'A is wrong\nB is missing',
      errors: ['A is wrong', 'B is missing']
    }
  )
})
