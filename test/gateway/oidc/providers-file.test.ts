import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { gatewayConfig } from '../../../src/gateway/config.js'
import { gatewaySettingsErrors } from '../../helper/settings-errors.js'

const ENVIRONMENT = {
  NODE_ENV: 'production',
  BACKEND_URL: 'http://backend.internal:4000',
  API_SECRET: 'a-secret-for-tests-0123456789-abcdef',
  PUBLIC_URL: 'https://app.example.com',
  SESSION_SECRET: 'session-secret-for-tests-0123456789',
  EXCHANGE_SECRET: 'exchange-secret-for-tests-0123456789'
}

const DEFAULT = {
  OIDC_ISSUER: 'https://id.example.com',
  OIDC_CLIENT_ID: 'gatehouse',
  OIDC_CLIENT_SECRET: 'hunter2'
}

const ENTRY = { id: 'corp', issuer: 'https://corp.example.com', client_id: 'gatehouse', client_secret_file: 'secret' }

t.test('OIDC_PROVIDERS', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-providers-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'secret'), ' s3cret \n')
  await writeFile(join(folder, 'empty'), '\n')
  const environmentOf = async (text: string, more = {}): Promise<Record<string, string>> => {
    const file = join(folder, 'providers.yaml')
    await writeFile(file, text)
    return { ...ENVIRONMENT, OIDC_PROVIDERS: file, ...more }
  }
  const errorsOf = async (text: string, more = {}): Promise<readonly string[]> =>
    gatewaySettingsErrors(await environmentOf(text, more))

  t.test('a YAML file adds providers behind the provider of the settings', async (t) => {
    const text = `
# our customers
- id: corp
  label: Corp
  issuer: https://corp.example.com
  client_id: abc
  client_secret_file: secret
  scopes: openid email
  claims:
    email: upn
    groups: realm_access.roles
- {id: b-2, issuer: https://b.example.com, client_id: c, client_secret_file: ${folder}/secret}
`
    const config = gatewayConfig(await environmentOf(text, DEFAULT)).oidc
    t.match(config, { hasList: true, providers: { length: 3 } })
    t.match(config?.providers[0], { id: 'default', redirectUri: 'https://app.example.com/auth/oidc/callback' })
    t.same(config?.providers[1], {
      id: 'corp',
      label: 'Corp',
      issuer: 'https://corp.example.com',
      clientId: 'abc',
      clientSecret: 's3cret',
      redirectUri: 'https://app.example.com/auth/oidc/corp/callback',
      signedOutUrl: 'https://app.example.com/',
      scopes: 'openid email',
      claims: { email: 'upn', name: null, groups: 'realm_access.roles' }
    })
    t.match(config?.providers[2], { id: 'b-2', label: 'b.example.com', claims: { groups: 'groups' } })
  })

  t.test('every error of a file is reported with its line', async (t) => {
    const text = `- id: Corp
  issuer: corp.example.com
  client_id: a
  client_secret: hunter2
- id: two
  issuer: http://two.example.com
  client_id: 5
  client_secret_file: secret
  scopes: email
  label: "\\e[31m"
  claims: {emial: upn, groups: 7}
- just text
- {id: login, issuer: https://a.example.com, client_id: a, client_secret_file: nowhere, secret: x}
`
    t.same(await errorsOf(text), [
      'OIDC_PROVIDERS providers.yaml:1: entry 1, client_secret_file is required',
      'OIDC_PROVIDERS providers.yaml:4: entry 1, client_secret is not a known field',
      'OIDC_PROVIDERS providers.yaml:1: entry 1, id must be 1 to 32 lower-case letters, digits and dashes, with no dash at either end',
      'OIDC_PROVIDERS providers.yaml:2: entry 1, issuer must be an http or https address without user, query or fragment',
      'OIDC_PROVIDERS providers.yaml:7: entry 2, client_id must be text',
      'OIDC_PROVIDERS providers.yaml:9: entry 2, scopes must be scopes separated by spaces, with openid',
      'OIDC_PROVIDERS providers.yaml:10: entry 2, label must be 1 to 64 printable characters',
      'OIDC_PROVIDERS providers.yaml:11: entry 2, claims.emial is not a known field',
      'OIDC_PROVIDERS providers.yaml:11: entry 2, claims.groups must be the claim with the groups, or a path such as a.b',
      'OIDC_PROVIDERS providers.yaml:12: entry 3 must be an object',
      'OIDC_PROVIDERS providers.yaml:13: entry 4, secret is not a known field',
      'OIDC_PROVIDERS providers.yaml:6: entry 2, issuer must be an https address in production, unless it is on this machine',
      'OIDC_PROVIDERS providers.yaml:13: entry 4, id must not be login, which has another meaning',
      'OIDC_PROVIDERS providers.yaml:13: entry 4, client_secret_file must name a readable file (ENOENT)'
    ])
  })

  t.test('errors of an entry that has another fault are reported too', async (t) => {
    const text = `- {id: login, issuer: nowhere, client_id: a, client_secret_file: nowhere}
- {id: two, issuer: http://two.example.com, client_id: [], client_secret_file: secret}
- {id: two, issuer: https://b.example.com, client_id: b, client_secret_file: secret}
`
    t.same(await errorsOf(text), [
      'OIDC_PROVIDERS providers.yaml:1: entry 1, issuer must be an http or https address without user, query or fragment',
      'OIDC_PROVIDERS providers.yaml:2: entry 2, client_id must be text',
      'OIDC_PROVIDERS providers.yaml:1: entry 1, id must not be login, which has another meaning',
      'OIDC_PROVIDERS providers.yaml:2: entry 2, issuer must be an https address in production, unless it is on this machine',
      'OIDC_PROVIDERS providers.yaml:3: entry 3, id is also the id of another entry',
      'OIDC_PROVIDERS providers.yaml:1: entry 1, client_secret_file must name a readable file (ENOENT)'
    ])
  })

  const entryOf = (...changes: object[]): string =>
    JSON.stringify(
      changes.map((change) => ({ ...ENTRY, ...change })),
      null,
      1
    )
  const CASES: readonly (readonly [title: string, text: string, error: string])[] = [
    ['an empty file', '', ': must contain one list'],
    ['an empty list', '[]', ':1: must be a list with at least one entry'],
    ['an object', 'id: corp', ':1: must be a list with at least one entry'],
    ['two documents', '[]\n---\n[]', ': must contain one list'],
    [
      'broken YAML',
      '- id: corp\n  issuer: a: b',
      ':2: is not valid YAML or JSON without aliases (bad indentation of a mapping entry)'
    ],
    [
      'broken JSON',
      '[{"id": "corp",\n',
      ':2: is not valid YAML or JSON without aliases (unexpected end of the stream within a flow collection)'
    ],
    ['a repeated field', '- id: a\n  id: b', ':2: is not valid YAML or JSON without aliases (duplicated mapping key)'],
    ['aliases', '- &a {id: a}\n- *a', ':2: is not valid YAML or JSON without aliases'],
    ['a reserved id', entryOf({ id: 'default' }), ':3: entry 1, id must not be default, which has another meaning'],
    ['a path as id', entryOf({ id: 'callback' }), ':3: entry 1, id must not be callback, which has another meaning'],
    ['a repeated id', entryOf({}, { client_id: 'b' }), ':9: entry 2, id is also the id of another entry'],
    ['a repeated client', entryOf({}, { id: 'b' }), ':8: entry 2 has the issuer and client_id of corp'],
    [
      'a repeated label',
      entryOf({ label: 'A' }, { id: 'b', client_id: 'b', label: 'A' }),
      ':14: entry 2, label is also that of another entry'
    ],
    [
      'an issuer without TLS in production',
      entryOf({ issuer: 'http://corp.example.com' }),
      ':4: entry 1, issuer must be an https address in production, unless it is on this machine'
    ],
    [
      'a missing file of the secret',
      entryOf({ client_secret_file: 'nowhere' }),
      ':6: entry 1, client_secret_file must name a readable file (ENOENT)'
    ],
    [
      'an empty file of the secret',
      entryOf({ client_secret_file: 'empty' }),
      ':6: entry 1, client_secret_file names an empty file'
    ]
  ]
  for (const [title, text, error] of CASES) {
    t.test(`a file with ${title} stops the start`, async (t) => {
      t.same(await errorsOf(text), [`OIDC_PROVIDERS providers.yaml${error}`])
    })
  }

  t.test('a missing file is reported together with the errors of other settings', async (t) => {
    t.same(gatewaySettingsErrors({ OIDC_PROVIDERS: join(folder, 'nowhere'), EXCHANGE_FIELD: 'provider' }), [
      'PUBLIC_URL is required with OIDC_PROVIDERS',
      'SESSION_SECRET is required with OIDC_PROVIDERS',
      'EXCHANGE_FIELD must not be another field of a login request',
      `OIDC_PROVIDERS must name a readable file (ENOENT): ${join(folder, 'nowhere')}`
    ])
  })

  t.test('an entry with the issuer and client id of the settings is rejected', async (t) => {
    t.same(await errorsOf(entryOf({ issuer: DEFAULT.OIDC_ISSUER }), DEFAULT), [
      'OIDC_PROVIDERS providers.yaml:2: entry 1 has the issuer and client_id of default'
    ])
  })
})
