import { createHmac } from 'node:crypto'
import t from 'tap'
import { type AppClaims, AppTokenVerifier, createAppToken, isAdmin, userDetails } from '../../src/shared/app-token.js'
import { secretKey } from '../../src/shared/jwt.js'
import { ExpiredToken, type RejectionReason } from '../../src/shared/token-errors.js'

const SECRET = 'a secret of at least thirty-two bytes'
const KEY = secretKey(SECRET)
const NOW_MS = 1_893_456_000_000
const EXP_MS = NOW_MS + 3_600_000

const jwtOf = (payload: string) => {
  const signed = ['{"alg":"HS256"}', payload].map((part) => Buffer.from(part).toString('base64url')).join('.')
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`
}
const legacyOf = (payload: string) => {
  const data = Buffer.from(payload).toString('base64')
  return `${data}.${createHmac('sha256', SECRET).update(data).digest('hex')}`
}
const claimsOf = (json: string): AppClaims => JSON.parse(json)

for (const format of ['jwt', 'legacy'] as const) {
  const make = (userId: number, lifetimeSeconds = 3600) =>
    createAppToken({ userId, role: 'viewer', permissions: ['zones:read'] }, KEY, {
      format,
      lifetimeSeconds,
      nowMs: NOW_MS
    })

  t.test(`AppTokenVerifier, with ${format} tokens`, async (t) => {
    t.test(`the verifier returns claims and expiry in milliseconds of ${format} tokens`, async (t) => {
      const verifier = new AppTokenVerifier(KEY, { now: () => NOW_MS })

      const { claims, expiresAtMs } = verifier.verify(make(7))

      t.equal(claims.userId, 7)
      t.equal(claims.role, 'viewer')
      t.strictSame(claims.permissions, ['zones:read'])
      t.equal(claims.exp, format === 'jwt' ? EXP_MS / 1000 : EXP_MS)
      t.equal(expiresAtMs, EXP_MS)
    })

    t.test(`the verifier uses the system clock by default for ${format} tokens`, async (t) => {
      const verifier = new AppTokenVerifier(KEY)
      const options = { format, lifetimeSeconds: 600 }

      t.equal(verifier.verify(createAppToken({ userId: 7 }, KEY, options)).claims.userId, 7)
      t.throws(() => verifier.verify(createAppToken({}, KEY, { ...options, nowMs: Date.now() - 600_001 })), {
        name: 'ExpiredToken'
      })
    })

    t.test(`the verifier deep-freezes the claims of ${format} tokens`, async (t) => {
      const token = (format === 'jwt' ? jwtOf : legacyOf)(
        `{"exp":${format === 'jwt' ? EXP_MS / 1000 : EXP_MS},"groups":[{"names":["staff"]}]}`
      )

      const { claims } = new AppTokenVerifier(KEY, { now: () => NOW_MS }).verify(token)
      // Claims are unknown; these are the ones of the payload above.
      const groups = claims.groups as { names: string[] }[]

      t.throws(() => Object.assign(claims, { role: 'admin' }), TypeError)
      t.throws(() => groups.pop(), TypeError)
      t.throws(() => groups[0]?.names.push('admins'), TypeError)
      t.strictSame(groups, [{ names: ['staff'] }])
    })

    t.test(`the verifier returns the same object for the same ${format} token`, async (t) => {
      const verifier = new AppTokenVerifier(KEY, { now: () => NOW_MS })
      const token = make(7)

      t.equal(verifier.verify(token), verifier.verify(token))
    })

    t.test(`the cache finds a ${format} token in another string object`, async (t) => {
      const verifier = new AppTokenVerifier(KEY, { now: () => NOW_MS })
      const header = `auth_token=${make(7)}; theme=dark`

      const first = verifier.verify(header.slice('auth_token='.length, header.indexOf(';')))

      t.equal(verifier.verify(make(7)), first)
    })

    t.test(`a ${format} token is valid until the millisecond before its expiry`, async (t) => {
      t.equal(new AppTokenVerifier(KEY, { now: () => EXP_MS - 1 }).verify(make(7)).expiresAtMs, EXP_MS)
    })

    t.test(`a ${format} token is rejected at its expiry`, async (t) => {
      t.throws(() => new AppTokenVerifier(KEY, { now: () => EXP_MS }).verify(make(7)), { name: 'ExpiredToken' })
    })

    t.test(`a cached ${format} token is rejected after its expiry, every time`, async (t) => {
      let now = NOW_MS
      const verifier = new AppTokenVerifier(KEY, { now: () => now })
      const token = make(7)

      const remembered = verifier.verify(token)
      now = EXP_MS - 1
      t.equal(verifier.verify(token), remembered)
      now = EXP_MS
      t.throws(() => verifier.verify(token), { name: 'ExpiredToken' })
      t.throws(() => verifier.verify(token), { name: 'ExpiredToken' })
    })

    t.test(`the error of an expired cached ${format} token has its claims`, async (t) => {
      let now = NOW_MS
      const verifier = new AppTokenVerifier(KEY, { now: () => now })
      const { claims } = verifier.verify(make(7))

      now = EXP_MS
      try {
        verifier.verify(make(7))
        t.fail('it did not throw')
      } catch (error) {
        t.equal(error instanceof ExpiredToken && error.claims, claims)
      }
    })

    t.test(`an expired ${format} token is removed from the cache`, async (t) => {
      let now = NOW_MS
      const verifier = new AppTokenVerifier(KEY, { now: () => now })
      const remembered = verifier.verify(make(7))

      now = EXP_MS
      t.throws(() => verifier.verify(make(7)), { name: 'ExpiredToken' })
      now = NOW_MS
      t.not(verifier.verify(make(7)), remembered, 'the evicted token is verified again')
    })

    t.test(`a full cache evicts only the oldest ${format} token`, async (t) => {
      const verifier = new AppTokenVerifier(KEY, { cacheSize: 2, now: () => NOW_MS })
      const first = verifier.verify(make(1))
      const second = verifier.verify(make(2))
      t.equal(verifier.verify(make(1)), first)

      const third = verifier.verify(make(3))

      t.equal(verifier.verify(make(2)), second)
      t.equal(verifier.verify(make(3)), third)
      t.not(verifier.verify(make(1)), first)
      t.not(verifier.verify(make(2)), second, 'verifying the first token again evicts the second')
      t.not(verifier.verify(make(3)), third, 'verifying the second token again evicts the third')
    })

    t.test(`the cache holds 10 000 ${format} tokens by default`, async (t) => {
      const verifier = new AppTokenVerifier(KEY, { now: () => NOW_MS })
      const first = verifier.verify(make(0))
      const second = verifier.verify(make(1))
      for (let userId = 2; userId < 10_000; userId++) verifier.verify(make(userId))
      t.equal(verifier.verify(make(0)), first)

      verifier.verify(make(10_000))

      t.equal(verifier.verify(make(1)), second)
      t.not(verifier.verify(make(0)), first)
    })

    t.test(`a cache of size 0 stores no ${format} token`, async (t) => {
      const verifier = new AppTokenVerifier(KEY, { cacheSize: 0, now: () => NOW_MS })

      const first = verifier.verify(make(7))
      const second = verifier.verify(make(7))

      t.not(second, first)
      t.strictSame(second, first)
    })

    t.test(`a rejected ${format} token is not cached`, async (t) => {
      const verifier = new AppTokenVerifier(KEY, { cacheSize: 1, now: () => NOW_MS })
      const verified = verifier.verify(make(7))
      const options = { format, lifetimeSeconds: 3600, nowMs: NOW_MS }

      const forged = createAppToken({ userId: 7 }, secretKey('another'), options)
      const expired = createAppToken({ userId: 8 }, KEY, { ...options, nowMs: NOW_MS - 3_600_000 })
      t.throws(() => verifier.verify(forged), { name: 'InvalidToken', reason: 'bad-signature' })
      t.throws(() => verifier.verify(expired), { name: 'ExpiredToken' })

      t.equal(verifier.verify(make(7)), verified)
      t.throws(() => verifier.verify(forged), { name: 'InvalidToken', reason: 'bad-signature' })
    })

    t.test(`a ${format} token of another secret is rejected`, async (t) => {
      const options = { format, lifetimeSeconds: 3600, nowMs: NOW_MS }
      const token = createAppToken({ sub: '7' }, secretKey('the secret of the relay'), options)

      t.throws(() => new AppTokenVerifier(KEY, { now: () => NOW_MS }).verify(token), {
        name: 'InvalidToken',
        reason: 'bad-signature'
      })
    })
  })
}

t.test('AppTokenVerifier', async (t) => {
  const legacy = legacyOf(`{"exp":${EXP_MS}}`)
  const jwt = jwtOf(`{"exp":${EXP_MS / 1000}}`)

  const rejected: [name: string, token: string, reason: RejectionReason][] = [
    ['an empty text', '', 'malformed'],
    ['the text null', 'null', 'malformed'],
    ['the text undefined', 'undefined', 'malformed'],
    ['one part', legacy.slice(0, legacy.indexOf('.')), 'malformed'],
    ['four parts', `${jwt}.${legacy.slice(-64)}`, 'malformed'],
    ['a thousand parts', 'e30.'.repeat(1000), 'malformed'],
    ['a JWT without its header', jwt.slice(jwt.indexOf('.') + 1), 'malformed'],
    ['a legacy token behind a JWT header', `${jwt.slice(0, jwt.indexOf('.'))}.${legacy}`, 'bad-signature'],
    ['a legacy token in seconds', legacyOf(`{"exp":${EXP_MS / 1000}}`), 'wrong-expiry-unit'],
    ['a JWT in milliseconds', jwtOf(`{"exp":${EXP_MS}}`), 'wrong-expiry-unit'],
    ['a JWT without an expiry', jwtOf('{"role":"admin"}'), 'no-expiry'],
    ['a legacy token without an expiry', legacyOf('{"role":"admin"}'), 'no-expiry'],
    ['a percent-encoded token', legacyOf(`{"exp":${EXP_MS}} `).replace('==', '%3D%3D'), 'malformed']
  ]

  for (const [name, token, reason] of rejected) {
    t.test(`the verifier rejects ${name}`, async (t) => {
      t.throws(() => new AppTokenVerifier(KEY, { now: () => NOW_MS }).verify(token), { name: 'InvalidToken', reason })
    })
  }

  t.test('the verifier accepts claims of the maximum depth', async (t) => {
    const token = jwtOf(`{"exp":${EXP_MS / 1000},"deep":${'['.repeat(3000)}${']'.repeat(3000)}}`)

    t.ok(Object.isFrozen(new AppTokenVerifier(KEY, { now: () => NOW_MS }).verify(token).claims.deep))
  })

  t.test('the last of two duplicate roles counts, as in JSON.parse', async (t) => {
    const token = jwtOf(`{"role":"admin","role":"viewer","exp":${EXP_MS / 1000}}`)

    const { claims } = new AppTokenVerifier(KEY, { now: () => NOW_MS }).verify(token)

    t.equal(claims.role, 'viewer')
    t.equal(isAdmin(claims), false)
  })

  t.test('a role in __proto__ is ignored', async (t) => {
    const token = legacyOf(`{"__proto__":{"role":"admin"},"exp":${EXP_MS}}`)

    const { claims } = new AppTokenVerifier(KEY, { now: () => NOW_MS }).verify(token)

    t.equal(claims.role, undefined)
    t.equal(isAdmin(claims), false)
  })
})

t.test('isAdmin', async (t) => {
  const cases: [claims: string, expected: boolean, title: string][] = [
    ['{"exp":1,"role":"admin"}', true, 'is true for the role admin'],
    ['{"exp":1,"role":"viewer","role":"admin"}', true, 'is true when the last of two roles is admin'],
    ['{"exp":1,"role":"viewer"}', false, 'is false for another role'],
    ['{"exp":1,"role":"Admin"}', false, 'is false for another case'],
    ['{"exp":1,"role":"admin "}', false, 'is false with a space'],
    ['{"exp":1,"role":["admin"]}', false, 'is false for a list'],
    ['{"exp":1,"role":{"admin":true}}', false, 'is false for an object'],
    ['{"exp":1,"role":true}', false, 'is false for true'],
    ['{"exp":1}', false, 'is false without a role'],
    ['{"exp":1,"roles":"admin","user":{"role":"admin"}}', false, 'is false for a role elsewhere'],
    ['{"exp":1,"__proto__":{"role":"admin"}}', false, 'is false for a role in __proto__']
  ]

  for (const [claims, expected, title] of cases) {
    t.test(`isAdmin ${title}`, async (t) => {
      t.equal(isAdmin(claimsOf(claims)), expected)
    })
  }

  t.test('isAdmin is false for an inherited role', async (t) => {
    t.equal(isAdmin(Object.assign(Object.create({ role: 'admin' }), { exp: 1 })), false)
  })
})

t.test('userDetails', async (t) => {
  const ids: [claims: string, expected: string | null, title: string][] = [
    ['{"exp":1,"userId":"u","id":"i","sub":"s"}', 'u', 'takes the id from userId first'],
    ['{"exp":1,"id":"i","sub":"s"}', 'i', 'takes the id from id next'],
    ['{"exp":1,"sub":"s"}', 's', 'takes the id from sub last'],
    ['{"exp":1,"userId":null,"sub":"s"}', 's', 'ignores a userId that is null'],
    ['{"exp":1,"userId":"","sub":"s"}', 's', 'ignores a userId that is empty'],
    ['{"exp":1,"userId":{"a":1},"id":[2],"sub":"s"}', 's', 'ignores ids that are neither text nor number'],
    ['{"exp":1,"userId":7}', '7', 'turns a number into text'],
    ['{"exp":1,"userId":0,"sub":"s"}', '0', 'accepts 0 as an id'],
    ['{"exp":1,"userId":9007199254740993}', null, 'finds no id in a number too large to be exact'],
    ['{"exp":1,"userId":1.5}', null, 'finds no id in a fraction'],
    ['{"exp":1,"userId":1e999}', null, 'finds no id in infinity'],
    ['{"exp":1,"userId":true}', null, 'finds no id in a boolean'],
    ['{"exp":1,"__proto__":{"userId":"u"}}', null, 'finds no id in __proto__'],
    ['{"exp":1}', null, 'finds no id without a claim for it']
  ]

  for (const [claims, expected, title] of ids) {
    t.test(`userDetails ${title}`, async (t) => {
      t.equal(userDetails(claimsOf(claims)).id, expected)
    })
  }

  t.test('userDetails returns email and role if they are text', async (t) => {
    const details = userDetails(claimsOf('{"exp":1,"userId":7,"email":"ada@example.com","role":"viewer","name":"Ada"}'))

    t.strictSame(details, { id: '7', email: 'ada@example.com', role: 'viewer' })
  })

  for (const value of ['null', '7', 'true', '""', '["admin"]', '{"a":"admin"}']) {
    t.test(`userDetails returns no email and no role for ${value}`, async (t) => {
      const details = userDetails(claimsOf(`{"exp":1,"sub":"s","email":${value},"role":${value}}`))

      t.strictSame(details, { id: 's', email: null, role: null })
    })
  }

  t.test('userDetails does not read inherited claims', async (t) => {
    const claims = Object.assign(Object.create({ userId: 'u', email: 'e', role: 'r' }), { exp: 1 })

    t.strictSame(userDetails(claims), { id: null, email: null, role: null })
  })
})
