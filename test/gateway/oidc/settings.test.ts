import t from 'tap'
import { gatewayConfig } from '../../../src/gateway/config.js'
import type { Environment } from '../../../src/shared/env.js'
import { gatewaySettingsErrors } from '../../helper/settings-errors.js'

const SECRET = 'session-secret-for-tests-0123456789'
const VALID = {
  NODE_ENV: 'production',
  BACKEND_URL: 'http://backend.internal:4000',
  API_SECRET: 'a-secret-for-tests-0123456789-abcdef',
  PUBLIC_URL: 'https://app.example.com',
  OIDC_ISSUER: 'https://id.example.com',
  OIDC_CLIENT_ID: 'gatehouse',
  OIDC_CLIENT_SECRET: 'hunter2',
  SESSION_SECRET: SECRET,
  EXCHANGE_SECRET: 'exchange-secret-for-tests-0123456789'
}

t.test('OIDC settings', async (t) => {
  t.test('OIDC is enabled by OIDC_ISSUER only', async (t) => {
    t.equal(gatewayConfig({ NODE_ENV: 'test' }).oidc, null)
    t.same(gatewayConfig(VALID).oidc, {
      providers: [
        {
          id: 'default',
          label: 'id.example.com',
          issuer: 'https://id.example.com',
          clientId: 'gatehouse',
          clientSecret: 'hunter2',
          redirectUri: 'https://app.example.com/auth/oidc/callback',
          signedOutUrl: 'https://app.example.com/',
          scopes: 'openid profile email',
          claims: { email: null, name: null, groups: 'groups' }
        }
      ],
      hasList: false,
      sessionSecrets: [SECRET],
      exchangeSecret: VALID.EXCHANGE_SECRET,
      exchangeField: 'okta'
    })
  })

  t.test('the redirect URI is normalised', async (t) => {
    const OIDC_REDIRECT_URI = 'https://APP.example.com:443/auth/oidc/callback'
    t.equal(
      gatewayConfig({ ...VALID, OIDC_REDIRECT_URI }).oidc?.providers[0]?.redirectUri,
      'https://app.example.com/auth/oidc/callback'
    )
  })

  for (const [EXCHANGE_SECRET, error] of [
    ['short', 'EXCHANGE_SECRET must have at least 32 characters in production'],
    ['ab'.repeat(20), 'EXCHANGE_SECRET is too easy to guess: use at least 4 different characters'],
    [SECRET, 'EXCHANGE_SECRET must not be API_SECRET or SESSION_SECRET'],
    [VALID.API_SECRET, 'EXCHANGE_SECRET must not be API_SECRET or SESSION_SECRET']
  ] as const) {
    t.test(`a weak EXCHANGE_SECRET is rejected: ${error}`, async (t) => {
      t.same(gatewaySettingsErrors({ ...VALID, EXCHANGE_SECRET }), [error])
    })
  }

  t.test('production requires EXCHANGE_SECRET with an identity provider', async (t) => {
    const error = 'EXCHANGE_SECRET is required with an identity provider in production'
    const { OIDC_ISSUER: _issuer, OIDC_CLIENT_ID: _id, OIDC_CLIENT_SECRET: _secret, ...withoutIssuer } = VALID
    const folder = t.testdir({
      secret: 'hunter2',
      'list.json': '[{"id":"a","issuer":"https://id.example.com","client_id":"x","client_secret_file":"secret"}]'
    })
    const OIDC_PROVIDERS = `${folder}/list.json`
    t.same(gatewaySettingsErrors({ ...VALID, EXCHANGE_SECRET: '' }), [error])
    t.same(gatewaySettingsErrors({ ...withoutIssuer, OIDC_PROVIDERS, EXCHANGE_SECRET: '' }), [error])
    t.same(gatewaySettingsErrors({ ...withoutIssuer, OIDC_PROVIDERS }), [])
    t.same(gatewaySettingsErrors({ ...VALID, NODE_ENV: 'development', EXCHANGE_SECRET: '' }), [])
    t.same(gatewaySettingsErrors({ ...withoutIssuer, EXCHANGE_SECRET: '' }), [])
  })

  t.test('LOGIN_REQUEST_FIELDS cannot name a field of the exchange', async (t) => {
    const settings = { ...VALID, EXCHANGE_FIELD: 'viaProvider' }
    for (const name of ['okta', 'OKTA', 'groups', 'provider', 'viaprovider'])
      t.match(gatewaySettingsErrors({ ...settings, LOGIN_REQUEST_FIELDS: `otp,${name}` }), [name], name)
    t.same(gatewaySettingsErrors({ ...settings, LOGIN_REQUEST_FIELDS: 'otp,tenant' }), [])
  })

  t.test('each missing OIDC setting is reported on its own line', async (t) => {
    t.same(gatewaySettingsErrors({ OIDC_ISSUER: 'https://id.example.com' }), [
      'OIDC_CLIENT_ID is required with OIDC_ISSUER',
      'OIDC_CLIENT_SECRET is required with OIDC_ISSUER',
      'PUBLIC_URL is required with OIDC_ISSUER, or OIDC_REDIRECT_URI',
      'SESSION_SECRET is required with OIDC_ISSUER'
    ])
  })

  const OLD = 'the-secret-before-this-one-0123456789'
  const CASES: readonly (readonly [change: Environment, error: string | null, title: string])[] = [
    [
      { PUBLIC_URL: '', OIDC_REDIRECT_URI: 'https://app.example.com/auth/oidc/callback' },
      null,
      'the redirect says where we are'
    ],
    [
      { OIDC_REDIRECT_URI: 'https://app.example.com/callback' },
      'OIDC_REDIRECT_URI must have the path /auth/oidc/callback',
      'no server listens there'
    ],
    [
      { OIDC_REDIRECT_URI: 'https://other.example.com/auth/oidc/callback' },
      'OIDC_REDIRECT_URI must be at PUBLIC_URL',
      'cookies would not come along'
    ],
    [
      { PUBLIC_URL: '', OIDC_REDIRECT_URI: 'http://app.example.com/auth/oidc/callback' },
      'OIDC_REDIRECT_URI must be an https address in production, unless it is on this machine',
      'codes could be read'
    ],
    [
      { OIDC_ISSUER: 'http://id.example.com' },
      'OIDC_ISSUER must be an https address in production, unless it is on this machine',
      'tokens could be changed'
    ],
    [
      { OIDC_ISSUER: 'http://localhost.example.com' },
      'OIDC_ISSUER must be an https address in production, unless it is on this machine',
      'a name that only begins like this machine'
    ],
    [{ OIDC_ISSUER: 'http://127.0.0.1:9100' }, null, 'this machine'],
    [{ OIDC_ISSUER: 'http://[::1]:9100/realm' }, null, 'this machine, in IPv6'],
    [{ OIDC_ISSUER: 'http://localhost:9100' }, null, 'this machine, by name'],
    [{ NODE_ENV: 'development', OIDC_ISSUER: 'http://id.internal' }, null, 'plain http in development'],
    [{ EXCHANGE_FIELD: 'viaProvider' }, null, 'another name'],
    [
      { EXCHANGE_FIELD: 'Groups' },
      'EXCHANGE_FIELD must not be another field of a login request',
      'the exchange has this field already'
    ],
    [
      { EXCHANGE_FIELD: 'a b' },
      'EXCHANGE_FIELD must be a name of letters, digits, - and _, not "a b"',
      'browsers could send other spellings'
    ],
    [{ OIDC_SCOPES: 'profile email' }, 'OIDC_SCOPES must contain openid', 'no ID token would come'],
    [{ OIDC_SCOPES: 'openid email offline_access' }, null, "scopes of one's own"],
    [
      { SESSION_SECRET: 'short' },
      'SESSION_SECRET must have at least 32 characters, and so must each older one behind it',
      'short'
    ],
    [
      { SESSION_SECRET: `${SECRET},short` },
      'SESSION_SECRET must have at least 32 characters, and so must each older one behind it',
      'an old one is short'
    ],
    [
      { SESSION_SECRET: 'a'.repeat(40) },
      'SESSION_SECRET is too easy to guess: use at least 4 different characters',
      'one character'
    ],
    [{ SESSION_SECRET: VALID.API_SECRET }, 'SESSION_SECRET must not be API_SECRET', 'the backend knows it'],
    [{ SESSION_SECRET: `${SECRET}, ${OLD}` }, null, 'an old one after the new one'],
    [{ OIDC_ISSUER: '' }, 'OIDC_ISSUER is required with OIDC_CLIENT_ID, OIDC_CLIENT_SECRET', 'no user could sign in'],
    [
      { SESSION_SECRET: `change-me-${SECRET}` },
      'SESSION_SECRET is too easy to guess: it contains a placeholder; openssl rand -hex 32 generates a value',
      'a value of a template'
    ]
  ]
  for (const [change, error, title] of CASES) {
    t.test(
      `the settings ${JSON.stringify(change)} are ${error === null ? 'accepted' : 'rejected'}: ${title}`,
      async (t) => {
        t.same(gatewaySettingsErrors({ ...VALID, ...change }), error === null ? [] : [error])
      }
    )
  }

  const ALONE: readonly (readonly [settings: Environment, error: string | null])[] = [
    [{ OIDC_SCOPES: 'openid' }, 'OIDC_ISSUER is required with OIDC_SCOPES'],
    [{ OIDC_GROUPS_CLAIM: 'roles' }, 'OIDC_ISSUER is required with OIDC_GROUPS_CLAIM'],
    [
      { SESSION_SECRET: 'short' },
      'SESSION_SECRET must have at least 32 characters, and so must each older one behind it'
    ],
    [{ SESSION_SECRET: SECRET }, null]
  ]
  for (const [settings, error] of ALONE) {
    const verdict = error === null ? 'are accepted' : `are rejected: ${error}`
    t.test(`without an issuer the settings ${JSON.stringify(settings)} ${verdict}`, async (t) => {
      t.same(gatewaySettingsErrors(settings), error === null ? [] : [error])
    })
  }

  t.test('a malformed OIDC_ISSUER is reported together with the errors of the other settings', async (t) => {
    t.same(gatewaySettingsErrors({ OIDC_ISSUER: 'id.example.com', OIDC_SCOPES: 'email', SESSION_SECRET: 'short' }), [
      'OIDC_ISSUER must be an http or https address without user, query or fragment',
      'OIDC_CLIENT_ID is required with OIDC_ISSUER',
      'OIDC_CLIENT_SECRET is required with OIDC_ISSUER',
      'PUBLIC_URL is required with OIDC_ISSUER, or OIDC_REDIRECT_URI',
      'OIDC_SCOPES must contain openid',
      'SESSION_SECRET must have at least 32 characters, and so must each older one behind it'
    ])
  })

  t.test('a malformed OIDC_REDIRECT_URI is not reported as a missing PUBLIC_URL', async (t) => {
    const errors = gatewaySettingsErrors({ ...VALID, PUBLIC_URL: '', OIDC_REDIRECT_URI: 'callback' })
    t.same(errors, ['OIDC_REDIRECT_URI must be an http or https address without user, query or fragment'])
  })

  t.test('setting errors do not contain secrets', async (t) => {
    t.notMatch(gatewaySettingsErrors({ ...VALID, SESSION_SECRET: 'hunter2' }).join(), 'hunter2')
  })
})
