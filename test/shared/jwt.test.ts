import { createHmac, createSecretKey, generateKeyPairSync, sign } from 'node:crypto'
import t from 'tap'
import { secretKey, signJwt, verifyJwt } from '../../src/shared/jwt.js'
import { ExpiredToken, InvalidToken, type RejectionReason } from '../../src/shared/token-errors.js'

const SECRET = 'a secret of at least thirty-two bytes'
const KEY = secretKey(SECRET)
const NOW = 1_893_456_000
const NOW_MS = NOW * 1000
const EXP = NOW + 3600

const HEADER = '{"alg":"HS256","typ":"JWT"}'
const PAYLOAD = `{"sub":"7","exp":${EXP}}`

// Tokens are built from exact text, because libraries do not create invalid ones.
const base64url = (content: string | Buffer) => Buffer.from(content).toString('base64url')
const hs = (hash: string, signed: string, secret = SECRET) =>
  createHmac(hash, secret).update(signed).digest('base64url')
const tokenOf = (header: string | Buffer, payload: string | Buffer, hash = 'sha256', secret = SECRET) => {
  const signed = `${base64url(header)}.${base64url(payload)}`
  return `${signed}.${hs(hash, signed, secret)}`
}
const withHeader = (header: string) => tokenOf(header, PAYLOAD)
const withPayload = (payload: string) => tokenOf(HEADER, payload)

const GOOD = tokenOf(HEADER, PAYLOAD)
const [GOOD_HEADER = '', GOOD_PAYLOAD = '', GOOD_SIGNATURE = ''] = GOOD.split('.')

t.test('verifyJwt', async (t) => {
  t.test('verifyJwt returns the claims of a valid token', async (t) => {
    t.strictSame(verifyJwt(GOOD, KEY, NOW_MS), { sub: '7', exp: EXP })
  })

  t.test('verifyJwt accepts the example of RFC 7515, appendix A.1', async (t) => {
    const key = createSecretKey(
      Buffer.from('AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow', 'base64url')
    )
    const token =
      'eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9' +
      '.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ' +
      '.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'

    t.strictSame(verifyJwt(token, key, 1_300_819_379_999), {
      iss: 'joe',
      exp: 1_300_819_380,
      'http://example.com/is_root': true
    })
  })

  t.test('verifyJwt uses the system clock by default', async (t) => {
    const soon = Math.floor(Date.now() / 1000) + 600
    const past = Math.floor(Date.now() / 1000) - 1

    t.equal(verifyJwt(withPayload(`{"exp":${soon}}`), KEY).exp, soon)
    t.throws(() => verifyJwt(withPayload(`{"exp":${past}}`), KEY), { name: 'ExpiredToken' })
  })

  const accepted: [name: string, token: string][] = [
    ['a header without typ', withHeader('{"alg":"HS256"}')],
    ['typ jwt', withHeader('{"alg":"HS256","typ":"jwt"}')],
    ['typ Jwt', withHeader('{"alg":"HS256","typ":"Jwt"}')],
    ['typ at+jwt', withHeader('{"alg":"HS256","typ":"at+jwt"}')],
    ['typ application/at+jwt', withHeader('{"alg":"HS256","typ":"application/at+jwt"}')],
    ['a kid, unread', withHeader('{"alg":"HS256","kid":"../../dev/null"}')],
    ['a jku, unread', withHeader('{"alg":"HS256","jku":"https://evil.example/keys"}')],
    ['a jwk, unread', withHeader('{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"}}')],
    ['an x5u, unread', withHeader('{"alg":"HS256","x5u":"https://evil.example/cert"}')],
    ['white space inside the JSON', withPayload(` {"exp" :\n${EXP} } `)],
    ['text outside ASCII', withPayload(`{"name":"Zoë 🦊","exp":${EXP}}`)],
    ['an nbf of this very second', withPayload(`{"exp":${EXP},"nbf":${NOW}}`)],
    ['an nbf with a fraction', withPayload(`{"exp":${EXP},"nbf":${NOW - 0.5}}`)],
    ['an nbf 60 s ahead', withPayload(`{"exp":${EXP},"nbf":${NOW + 60}}`)],
    ['an iat 60 s ahead', withPayload(`{"exp":${EXP},"iat":${NOW + 60}}`)],
    ['an exp with a fraction', withPayload(`{"exp":${EXP}.5}`)],
    ['an exp written as 1.9e9', withPayload('{"exp":1.9e9}')],
    ['the last exp that can be seconds', withPayload('{"exp":99999999999}')]
  ]

  for (const [name, token] of accepted) {
    t.test(`verifyJwt accepts ${name}`, async (t) => {
      t.type(verifyJwt(token, KEY, NOW_MS).exp, 'number')
    })
  }

  t.test('verifyJwt accepts a token of 8 KiB and rejects a longer one', async (t) => {
    const longest = withPayload(`{"exp":${EXP},"pad":"${'x'.repeat(6056)}"}`)
    const tooLong = withPayload(`{"exp":${EXP},"pad":"${'x'.repeat(6057)}"}`)

    t.equal(longest.length, 8192)
    t.equal(verifyJwt(longest, KEY, NOW_MS).exp, EXP)
    t.equal(tooLong.length, 8193)
    t.throws(() => verifyJwt(tooLong, KEY, NOW_MS), { name: 'InvalidToken', reason: 'too-long' })
  })

  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const rsaSigned = `${base64url('{"alg":"RS256","typ":"JWT"}')}.${GOOD_PAYLOAD}`

  const rejected: [name: string, token: string, reason: RejectionReason][] = [
    // The algorithm
    ['alg none', withHeader('{"alg":"none","typ":"JWT"}'), 'bad-algorithm'],
    ['alg None', withHeader('{"alg":"None","typ":"JWT"}'), 'bad-algorithm'],
    ['alg nOnE', withHeader('{"alg":"nOnE","typ":"JWT"}'), 'bad-algorithm'],
    ['alg none without a signature', `${base64url('{"alg":"none"}')}.${GOOD_PAYLOAD}.`, 'malformed'],
    ['alg hs256', withHeader('{"alg":"hs256","typ":"JWT"}'), 'bad-algorithm'],
    ['alg HS256 with a space', withHeader('{"alg":"HS256 ","typ":"JWT"}'), 'bad-algorithm'],
    ['HS384 with the right secret', tokenOf('{"alg":"HS384"}', PAYLOAD, 'sha384'), 'bad-algorithm'],
    ['HS512 with the right secret', tokenOf('{"alg":"HS512"}', PAYLOAD, 'sha512'), 'bad-algorithm'],
    ['an HS512 signature under an HS256 header', tokenOf(HEADER, PAYLOAD, 'sha512'), 'bad-signature'],
    ['an RS256 header with an HMAC signature', withHeader('{"alg":"RS256","typ":"JWT"}'), 'bad-algorithm'],
    [
      'an RS256 signature',
      `${rsaSigned}.${sign('sha256', Buffer.from(rsaSigned), rsa.privateKey).toString('base64url')}`,
      'bad-algorithm'
    ],
    ['an alg that is a list', withHeader('{"alg":["HS256"],"typ":"JWT"}'), 'bad-algorithm'],
    ['an alg that is null', withHeader('{"alg":null,"typ":"JWT"}'), 'bad-algorithm'],
    ['a missing alg', withHeader('{"typ":"JWT"}'), 'bad-algorithm'],
    ['an empty header object', withHeader('{}'), 'bad-algorithm'],
    ['a second alg that overrides the first', withHeader('{"alg":"HS256","alg":"none"}'), 'bad-algorithm'],
    ['an alg hidden in __proto__', withHeader('{"__proto__":{"alg":"HS256"}}'), 'bad-algorithm'],

    // The rest of the header
    ['typ JWE', withHeader('{"alg":"HS256","typ":"JWE"}'), 'bad-header'],
    ['typ JWT in a list', withHeader('{"alg":"HS256","typ":["JWT"]}'), 'bad-header'],
    ['typ null', withHeader('{"alg":"HS256","typ":null}'), 'bad-header'],
    ['a crit list', withHeader('{"alg":"HS256","crit":["exp"]}'), 'bad-header'],
    ['an empty crit list', withHeader('{"alg":"HS256","crit":[]}'), 'bad-header'],
    ['b64 false', withHeader('{"alg":"HS256","b64":false}'), 'bad-header'],
    ['b64 true', withHeader('{"alg":"HS256","b64":true}'), 'bad-header'],
    ['a header that is a list', withHeader('[{"alg":"HS256"}]'), 'not-an-object'],
    ['a header that is a string', withHeader('"HS256"'), 'not-an-object'],
    ['a header that is null', withHeader('null'), 'not-an-object'],
    ['a header that is not JSON', withHeader('alg=HS256'), 'malformed'],
    [
      'a header that is not UTF-8',
      tokenOf(Buffer.from('{"alg":"HS256","kid":"\xff"}', 'latin1'), PAYLOAD),
      'malformed'
    ],

    // The form
    ['an empty text', '', 'malformed'],
    ['two dots and nothing else', '..', 'malformed'],
    ['two parts', `${GOOD_HEADER}.${GOOD_PAYLOAD}`, 'malformed'],
    ['four parts', `${GOOD}.${GOOD_SIGNATURE}`, 'malformed'],
    ['the five parts of a JWE', `${GOOD}.AAAA.AAAA`, 'malformed'],
    ['a dot at the end', `${GOOD}.`, 'malformed'],
    ['a dot at the start', `.${GOOD}`, 'malformed'],
    ['an empty header', `.${GOOD_PAYLOAD}.${GOOD_SIGNATURE}`, 'malformed'],
    ['an empty payload', `${GOOD_HEADER}..${GOOD_SIGNATURE}`, 'malformed'],
    ['an empty signature', `${GOOD_HEADER}.${GOOD_PAYLOAD}.`, 'malformed'],
    ['padding after the signature', `${GOOD}=`, 'malformed'],
    ['padding after the header', GOOD.replace('.', '=.'), 'malformed'],
    ['a space at the start', ` ${GOOD}`, 'malformed'],
    ['a space at the end', `${GOOD} `, 'malformed'],
    ['a newline at the end', `${GOOD}\n`, 'malformed'],
    ['a newline in the middle', GOOD.replace('.', '.\n'), 'malformed'],
    ['a NUL at the end', `${GOOD}\0`, 'malformed'],
    ['quotes around it', `"${GOOD}"`, 'malformed'],
    ['a Bearer prefix', `Bearer ${GOOD}`, 'malformed'],
    ['a letter outside ASCII', GOOD.replace('e', 'е'), 'malformed'],
    ['standard base64 letters', GOOD.replace('.', '+/.'), 'malformed'],
    ['a megabyte of dots', '.'.repeat(1_000_000), 'too-long'],

    // The signature
    ['another secret', tokenOf(HEADER, PAYLOAD, 'sha256', `${SECRET}!`), 'bad-signature'],
    ['a payload changed after signing', GOOD.replace(GOOD_PAYLOAD, base64url(`{"exp":${EXP + 1}}`)), 'bad-signature'],
    ['a header changed after signing', GOOD.replace(GOOD_HEADER, base64url('{"alg":"HS256"}')), 'bad-signature'],
    ['a signature cut by one character', GOOD.slice(0, -1), 'bad-signature'],
    ['a signature of one character', `${GOOD_HEADER}.${GOOD_PAYLOAD}.A`, 'bad-signature'],
    ['a signature with a character more', `${GOOD}A`, 'bad-signature'],
    [
      'a signature in hex',
      `${GOOD_HEADER}.${GOOD_PAYLOAD}.${Buffer.from(GOOD_SIGNATURE, 'base64url').toString('hex')}`,
      'bad-signature'
    ],
    ['an expired token with a bad signature', tokenOf(HEADER, '{"exp":1}', 'sha256', 'another'), 'bad-signature'],

    // The payload
    ['a payload that is a list', withPayload(`[{"exp":${EXP}}]`), 'not-an-object'],
    ['a payload that is a string', withPayload('"exp"'), 'not-an-object'],
    ['a payload that is null', withPayload('null'), 'not-an-object'],
    ['a payload that is a number', withPayload(String(EXP)), 'not-an-object'],
    ['a payload that is true', withPayload('true'), 'not-an-object'],
    ['a payload that is not JSON', withPayload(`{exp:${EXP}}`), 'malformed'],
    ['a payload followed by more', withPayload(`${PAYLOAD}{}`), 'malformed'],
    ['a payload that begins with a byte order mark', withPayload(`\ufeff${PAYLOAD}`), 'malformed'],
    [
      'a payload that is not UTF-8',
      tokenOf(HEADER, Buffer.from(`{"role":"\xe9","exp":${EXP}}`, 'latin1')),
      'malformed'
    ],

    // The times
    ['a missing exp', withPayload('{"sub":"7"}'), 'no-expiry'],
    ['an exp hidden in __proto__', withPayload(`{"__proto__":{"exp":${EXP}}}`), 'no-expiry'],
    ['an exp in upper case', withPayload(`{"EXP":${EXP}}`), 'no-expiry'],
    ['an exp that is a string', withPayload(`{"exp":"${EXP}"}`), 'bad-expiry'],
    ['an exp that is null', withPayload('{"exp":null}'), 'bad-expiry'],
    ['an exp that is true', withPayload('{"exp":true}'), 'bad-expiry'],
    ['an exp that is a list', withPayload(`{"exp":[${EXP}]}`), 'bad-expiry'],
    ['an exp that is an object', withPayload('{"exp":{}}'), 'bad-expiry'],
    ['an exp of NaN', withPayload('{"exp":NaN}'), 'malformed'],
    ['an exp that overflows to infinity', withPayload('{"exp":1e999}'), 'bad-expiry'],
    ['an exp in milliseconds', withPayload(`{"exp":${EXP * 1000}}`), 'wrong-expiry-unit'],
    ['the first exp that must be milliseconds', withPayload('{"exp":100000000000}'), 'wrong-expiry-unit'],
    ['a second exp that is a string', withPayload(`{"exp":${EXP},"exp":"${EXP}"}`), 'bad-expiry'],
    ['an nbf 61 s ahead', withPayload(`{"exp":${EXP},"nbf":${NOW + 61}}`), 'not-yet-valid'],
    ['an nbf in milliseconds', withPayload(`{"exp":${EXP},"nbf":${NOW_MS - 1000}}`), 'bad-not-before'],
    ['an nbf that is a string', withPayload(`{"exp":${EXP},"nbf":"${NOW}"}`), 'bad-not-before'],
    ['an nbf that is null', withPayload(`{"exp":${EXP},"nbf":null}`), 'bad-not-before'],
    ['an nbf of minus infinity', withPayload(`{"exp":${EXP},"nbf":-1e999}`), 'bad-not-before'],
    ['an iat 61 s ahead', withPayload(`{"exp":${EXP},"iat":${NOW + 61}}`), 'issued-in-future'],
    ['an iat in milliseconds', withPayload(`{"exp":${EXP},"iat":${NOW_MS}}`), 'bad-issued-at'],
    ['an iat that is a string', withPayload(`{"exp":${EXP},"iat":"${NOW}"}`), 'bad-issued-at'],
    ['an iat of minus infinity', withPayload(`{"exp":${EXP},"iat":-1e999}`), 'bad-issued-at'],
    ['an expired token that is not valid yet', withPayload(`{"exp":1,"nbf":${NOW + 61}}`), 'not-yet-valid']
  ]

  for (const [name, token, reason] of rejected) {
    t.test(`verifyJwt rejects ${name}`, async (t) => {
      t.throws(() => verifyJwt(token, KEY, NOW_MS), { name: 'InvalidToken', reason })
    })
  }

  t.test('verifyJwt rejects the three other spellings of the signature', async (t) => {
    const bytes = Buffer.from(GOOD_SIGNATURE, 'base64url')
    const others = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
      .map((last) => GOOD_SIGNATURE.slice(0, -1) + last)
      .filter((spelling) => spelling !== GOOD_SIGNATURE && Buffer.from(spelling, 'base64url').equals(bytes))

    t.equal(others.length, 3, 'two bits are spare')
    for (const spelling of others) {
      const token = `${GOOD_HEADER}.${GOOD_PAYLOAD}.${spelling}`
      t.throws(() => verifyJwt(token, KEY, NOW_MS), { name: 'InvalidToken', reason: 'bad-signature' }, spelling)
    }
  })

  t.test('verifyJwt rejects a signed payload with spare bits set', async (t) => {
    const payload = `{"exp":${EXP}} `
    const respelled = base64url(payload).replace(/A$/, 'B')
    const signed = `${GOOD_HEADER}.${respelled}`

    t.not(respelled, base64url(payload))
    t.equal(Buffer.from(respelled, 'base64url').toString(), payload, 'the bytes are the same')
    t.throws(() => verifyJwt(`${signed}.${hs('sha256', signed)}`, KEY, NOW_MS), {
      name: 'InvalidToken',
      reason: 'malformed'
    })
  })

  t.test('verifyJwt rejects a token with any one character changed', async (t) => {
    const passed: string[] = []
    let tried = 0
    for (let at = 0; at < GOOD.length; at++) {
      for (const other of 'Aaz9-_.'.replace(GOOD.charAt(at), '')) {
        tried++
        try {
          verifyJwt(GOOD.slice(0, at) + other + GOOD.slice(at + 1), KEY, NOW_MS)
          passed.push(`${other} at ${at}`)
        } catch (error) {
          if (!(error instanceof InvalidToken)) throw error
        }
      }
    }

    t.ok(tried >= 6 * GOOD.length)
    t.strictSame(passed, [])
  })

  t.test('verifyJwt rejects every token if the key is not a secret key', async (t) => {
    t.throws(() => verifyJwt(GOOD, rsa.publicKey, NOW_MS), { name: 'InvalidToken', reason: 'bad-signature' })
  })

  t.test('the error of a payload that is not JSON does not contain its text', async (t) => {
    try {
      verifyJwt(withPayload('ada@example.com'), KEY, NOW_MS)
      t.fail('it did not throw')
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error
      t.equal(error.cause, undefined)
      t.equal(error.message, 'token rejected: malformed')
    }
  })
})

t.test('the expiry of a JWT', async (t) => {
  t.test('a JWT is valid one millisecond before exp', async (t) => {
    t.equal(verifyJwt(GOOD, KEY, EXP * 1000 - 1).exp, EXP)
  })

  t.test('a JWT is expired at exp', async (t) => {
    t.throws(() => verifyJwt(GOOD, KEY, EXP * 1000), { name: 'ExpiredToken' })
  })

  t.test('a JWT with a negative exp is expired', async (t) => {
    t.throws(() => verifyJwt(withPayload('{"exp":-1}'), KEY, NOW_MS), { name: 'ExpiredToken' })
  })

  t.test('the error of an expired JWT has the claims, hidden from loggers', async (t) => {
    try {
      verifyJwt(GOOD, KEY, EXP * 1000)
      t.fail('it did not throw')
    } catch (error) {
      if (!(error instanceof ExpiredToken)) throw error
      t.strictSame(error.claims, { sub: '7', exp: EXP })
      t.strictSame(Object.keys(error), ['name'])
    }
  })

  t.test('an exp with a fraction is exact to the millisecond', async (t) => {
    const token = withPayload(`{"exp":${EXP}.5}`)

    t.equal(verifyJwt(token, KEY, EXP * 1000 + 499).exp, EXP + 0.5)
    t.throws(() => verifyJwt(token, KEY, EXP * 1000 + 500), { name: 'ExpiredToken' })
  })

  t.test('nbf and iat are exact to the millisecond', async (t) => {
    const startsNow = withPayload(`{"exp":${EXP},"nbf":${NOW}}`)
    const issuedAhead = withPayload(`{"exp":${EXP},"iat":${NOW}}`)

    t.equal(verifyJwt(startsNow, KEY, NOW_MS - 60_000).exp, EXP)
    t.throws(() => verifyJwt(startsNow, KEY, NOW_MS - 60_001), { name: 'InvalidToken', reason: 'not-yet-valid' })
    t.equal(verifyJwt(issuedAhead, KEY, NOW_MS - 60_000).exp, EXP)
    t.throws(() => verifyJwt(issuedAhead, KEY, NOW_MS - 60_001), { name: 'InvalidToken', reason: 'issued-in-future' })
  })
})

t.test('signJwt', async (t) => {
  t.test('signJwt writes header, claims and times only', async (t) => {
    const token = signJwt({ sub: '7' }, KEY, { lifetimeSeconds: 3600, nowMs: NOW_MS + 999 })

    t.equal(token, tokenOf(HEADER, `{"sub":"7","iat":${NOW},"exp":${EXP}}`))
  })

  t.test('verifyJwt accepts a token of signJwt until its lifetime ends', async (t) => {
    const token = signJwt({ sub: 'Zoë', permissions: ['zones:read'] }, KEY, { lifetimeSeconds: 60, nowMs: NOW_MS })

    const claims = { sub: 'Zoë', permissions: ['zones:read'], iat: NOW, exp: NOW + 60 }
    t.strictSame(verifyJwt(token, KEY, NOW_MS + 59_999), claims)
    t.throws(() => verifyJwt(token, KEY, NOW_MS + 60_000), { name: 'ExpiredToken' })
  })

  t.test('signJwt uses the system clock by default', async (t) => {
    const before = Math.floor(Date.now() / 1000)
    const { exp } = verifyJwt(signJwt({}, KEY, { lifetimeSeconds: 600 }), KEY)
    const after = Math.floor(Date.now() / 1000)

    t.ok(exp >= before + 600 && exp <= after + 600)
  })

  t.test('signJwt overwrites the times of the claims', async (t) => {
    const token = signJwt({ exp: EXP * 2, iat: 1 }, KEY, { lifetimeSeconds: 3600, nowMs: NOW_MS })

    t.strictSame(verifyJwt(token, KEY, NOW_MS), { iat: NOW, exp: EXP })
  })

  for (const lifetimeSeconds of [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.test(`signJwt rejects a lifetime of ${lifetimeSeconds}`, async (t) => {
      t.throws(() => signJwt({}, KEY, { lifetimeSeconds, nowMs: NOW_MS }), RangeError)
    })
  }
})

t.test('secretKey', async (t) => {
  t.test('secretKey has the UTF-8 bytes of the text', async (t) => {
    t.strictSame(secretKey('clé').export(), Buffer.from([0x63, 0x6c, 0xc3, 0xa9]))
  })

  t.test('secretKey rejects an empty text', async (t) => {
    t.throws(() => secretKey(''), RangeError)
  })
})
