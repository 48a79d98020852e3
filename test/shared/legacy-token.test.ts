import { createHmac } from 'node:crypto'
import t from 'tap'
import { secretKey } from '../../src/shared/jwt.js'
import { createLegacyToken, verifyLegacyToken } from '../../src/shared/legacy-token.js'
import { ExpiredToken, InvalidToken, type RejectionReason } from '../../src/shared/token-errors.js'

const SECRET = 'a secret of at least thirty-two bytes'
const KEY = secretKey(SECRET)
const NOW = 1_893_456_000_000
const EXP = NOW + 3_600_000

// Tokens are built from exact text with a valid signature unless the title says otherwise, so that the tested rule
// rejects them and not the signature.
const base64 = (content: string | Buffer) => Buffer.from(content).toString('base64')
const signData = (data: string, secret = SECRET) => `${data}.${createHmac('sha256', secret).update(data).digest('hex')}`
const withPayload = (payload: string | Buffer) => signData(base64(payload))

// Its base64 ends in `Q==`, whose last letter has four spare bits, and holds a `/` and a `+`.
const PAYLOAD = `{"q":"???~~~","exp":${EXP}}`
const DATA = base64(PAYLOAD)
const GOOD = signData(DATA)
const UNPADDED = base64(`{"a":1,"exp":${EXP}}`)
const SIGNATURE = GOOD.slice(GOOD.indexOf('.') + 1)

t.test('verifyLegacyToken', async (t) => {
  t.test('verifyLegacyToken returns the claims of a valid token', async (t) => {
    t.strictSame(verifyLegacyToken(GOOD, KEY, NOW), { q: '???~~~', exp: EXP })
  })

  t.test('verifyLegacyToken accepts a token of another implementation', async (t) => {
    const token =
      'eyJ1c2VySWQiOjcsInJvbGUiOiJhZG1pbiIsImV4cCI6MTg5MzQ1OTYwMDAwMH0=' +
      '.f5b4b97ab1cb50a2cc3b1b7c56c3540af2cef15aec8cc2f3d054848065adf470'

    t.strictSame(verifyLegacyToken(token, KEY, NOW), { userId: 7, role: 'admin', exp: EXP })
  })

  t.test('verifyLegacyToken uses the system clock by default', async (t) => {
    const soon = Date.now() + 600_000
    const past = Date.now() - 1

    t.equal(verifyLegacyToken(withPayload(`{"exp":${soon}}`), KEY).exp, soon)
    t.throws(() => verifyLegacyToken(withPayload(`{"exp":${past}}`), KEY), { name: 'ExpiredToken' })
  })

  const accepted: [name: string, token: string][] = [
    ['data that needs no padding', signData(UNPADDED)],
    ['data with one =', withPayload(`{"a":111,"exp":${EXP}}`)],
    ['data with two =', withPayload(`{"a":11,"exp":${EXP}}`)],
    ['text outside ASCII', withPayload(`{"name":"Zoë 🦊","exp":${EXP}}`)],
    ['an nbf of this very millisecond', withPayload(`{"exp":${EXP},"nbf":${NOW}}`)],
    ['an exp with a fraction', withPayload(`{"exp":${EXP}.5}`)],
    ['an nbf 60 s ahead', withPayload(`{"exp":${EXP},"nbf":${NOW + 60_000}}`)],
    ['an iat 60 s ahead', withPayload(`{"exp":${EXP},"iat":${NOW + 60_000}}`)],
    ['the last exp that can be milliseconds', withPayload('{"exp":99999999999999}')]
  ]

  for (const [name, token] of accepted) {
    t.test(`verifyLegacyToken accepts ${name}`, async (t) => {
      t.type(verifyLegacyToken(token, KEY, NOW).exp, 'number')
    })
  }

  t.test('verifyLegacyToken accepts a token of less than 8 KiB and rejects a longer one', async (t) => {
    const longest = withPayload(`{"exp":${EXP},"pad":"${'x'.repeat(6063)}"}`)
    const tooLong = withPayload(`{"exp":${EXP},"pad":"${'x'.repeat(6066)}"}`)

    t.equal(longest.length, 8189)
    t.equal(verifyLegacyToken(longest, KEY, NOW).exp, EXP)
    t.equal(tooLong.length, 8193)
    t.throws(() => verifyLegacyToken(tooLong, KEY, NOW), { name: 'InvalidToken', reason: 'too-long' })
  })

  t.test('the sample token has the padding and characters that the variants change', async (t) => {
    t.match(DATA, /Q==$/, 'four zero bits before the padding')
    t.match(DATA, /\+/)
    t.match(DATA, /\//)
    t.notMatch(UNPADDED, /=/)
    t.match(SIGNATURE, /[a-f]/)
  })

  const rejected: [name: string, token: string, reason: RejectionReason][] = [
    // The form
    ['an empty text', '', 'malformed'],
    ['a dot and nothing else', '.', 'malformed'],
    ['data without a signature', DATA, 'malformed'],
    ['an empty signature', `${DATA}.`, 'malformed'],
    ['empty data, rightly signed', signData(''), 'malformed'],
    ['three parts', `${GOOD}.${SIGNATURE}`, 'malformed'],
    ['a dot at the start', `.${GOOD}`, 'malformed'],
    ['a dot at the end', `${GOOD}.`, 'malformed'],
    ['a space at the start', ` ${GOOD}`, 'malformed'],
    ['a newline at the end', `${GOOD}\n`, 'malformed'],
    ['a newline inside the data, rightly signed', signData(`${DATA.slice(0, 8)}\n${DATA.slice(8)}`), 'malformed'],
    ['a megabyte of letters', 'A'.repeat(1_000_000), 'too-long'],

    // The signature
    ['a signature of 63 digits', GOOD.slice(0, -1), 'malformed'],
    ['a signature of 65 digits', `${GOOD}0`, 'malformed'],
    ['a signature of 62 digits', GOOD.slice(0, -2), 'malformed'],
    ['a signature in upper case', `${DATA}.${SIGNATURE.toUpperCase()}`, 'malformed'],
    ['a signature with a letter that is not hex', `${DATA}.${SIGNATURE.slice(0, -1)}g`, 'malformed'],
    ['a signature that begins with 0x', `${DATA}.0x${SIGNATURE.slice(2)}`, 'malformed'],
    ['a signature in base64', `${DATA}.${Buffer.from(SIGNATURE, 'hex').toString('base64')}`, 'malformed'],
    ['a signature of zeros', `${DATA}.${'0'.repeat(64)}`, 'bad-signature'],
    ['another secret', signData(DATA, `${SECRET}!`), 'bad-signature'],
    ['data changed after signing', `${base64(`{"exp":${EXP + 1}}`)}.${SIGNATURE}`, 'bad-signature'],
    [
      'a signature over the decoded bytes',
      `${DATA}.${createHmac('sha256', SECRET).update(PAYLOAD).digest('hex')}`,
      'bad-signature'
    ],
    [
      'a SHA-512 signature cut to 64 digits',
      `${DATA}.${createHmac('sha512', SECRET).update(DATA).digest('hex').slice(0, 64)}`,
      'bad-signature'
    ],
    ['an expired token with a bad signature', signData(base64('{"exp":100000000000}'), 'another'), 'bad-signature'],

    // The encoding of the data
    ['base64url data', signData(DATA.replaceAll('+', '-').replaceAll('/', '_')), 'malformed'],
    ['data without its padding', signData(DATA.replaceAll('=', '')), 'malformed'],
    ['data with half of its padding', signData(DATA.slice(0, -1)), 'malformed'],
    ['data with too much padding', signData(`${DATA}=`), 'malformed'],
    ['data with padding that is not due', signData(`${UNPADDED}=`), 'malformed'],
    ['padding in the middle of the data', signData(`${base64('{} ')}==${DATA}`), 'malformed'],
    ['garbage inside the data', signData(`${DATA.slice(0, 8)}*${DATA.slice(8)}`), 'malformed'],
    ['data whose spare bits are set', signData(DATA.replace(/Q==$/, 'R==')), 'malformed'],
    ['data with one stray letter', signData(`${UNPADDED}A`), 'malformed'],

    // The payload
    ['a payload that is a list', withPayload(`[{"exp":${EXP}}]`), 'not-an-object'],
    ['a payload that is a string', withPayload('"exp"'), 'not-an-object'],
    ['a payload that is null', withPayload('null'), 'not-an-object'],
    ['a payload that is a number', withPayload(String(EXP)), 'not-an-object'],
    ['a payload that is not JSON', withPayload(`{exp:${EXP}}`), 'malformed'],
    ['a payload that begins with a byte order mark', withPayload(`\ufeff${PAYLOAD}`), 'malformed'],
    ['a payload that is not UTF-8', withPayload(Buffer.from(`{"role":"\xe9","exp":${EXP}}`, 'latin1')), 'malformed'],

    // The times
    ['a missing exp', withPayload('{"userId":7}'), 'no-expiry'],
    ['an exp hidden in __proto__', withPayload(`{"__proto__":{"exp":${EXP}}}`), 'no-expiry'],
    ['an exp that is a string', withPayload(`{"exp":"${EXP}"}`), 'bad-expiry'],
    ['an exp that is null', withPayload('{"exp":null}'), 'bad-expiry'],
    ['an exp that overflows to infinity', withPayload('{"exp":1e999}'), 'bad-expiry'],
    ['an exp in seconds', withPayload(`{"exp":${EXP / 1000}}`), 'wrong-expiry-unit'],
    ['the last exp that must be seconds', withPayload('{"exp":99999999999}'), 'wrong-expiry-unit'],
    ['a negative exp', withPayload(`{"exp":${-EXP}}`), 'wrong-expiry-unit'],
    ['an exp in microseconds', withPayload(`{"exp":${EXP * 1000}}`), 'wrong-expiry-unit'],
    ['the first exp that must be microseconds', withPayload('{"exp":100000000000000}'), 'wrong-expiry-unit'],
    ['an exp past the last date there is', withPayload('{"exp":1e300}'), 'wrong-expiry-unit'],
    ['an nbf more than 60 s ahead', withPayload(`{"exp":${EXP},"nbf":${NOW + 60_001}}`), 'not-yet-valid'],
    ['an nbf that is a string', withPayload(`{"exp":${EXP},"nbf":"${NOW}"}`), 'bad-not-before'],
    ['an iat more than 60 s ahead', withPayload(`{"exp":${EXP},"iat":${NOW + 60_001}}`), 'issued-in-future'],
    ['an iat that is a string', withPayload(`{"exp":${EXP},"iat":"${NOW}"}`), 'bad-issued-at']
  ]

  for (const [name, token, reason] of rejected) {
    t.test(`verifyLegacyToken rejects ${name}`, async (t) => {
      t.throws(() => verifyLegacyToken(token, KEY, NOW), { name: 'InvalidToken', reason })
    })
  }

  t.test('verifyLegacyToken rejects a token with any one character changed', async (t) => {
    const passed: string[] = []
    let tried = 0
    for (let at = 0; at < GOOD.length; at++) {
      for (const other of 'Aa09+/=.'.replace(GOOD.charAt(at), '')) {
        tried++
        try {
          verifyLegacyToken(GOOD.slice(0, at) + other + GOOD.slice(at + 1), KEY, NOW)
          passed.push(`${other} at ${at}`)
        } catch (error) {
          if (!(error instanceof InvalidToken)) throw error
        }
      }
    }

    t.ok(tried >= 7 * GOOD.length)
    t.strictSame(passed, [])
  })
})

t.test('the expiry of a legacy token', async (t) => {
  t.test('a legacy token is valid one millisecond before exp', async (t) => {
    t.equal(verifyLegacyToken(GOOD, KEY, EXP - 1).exp, EXP)
  })

  t.test('a legacy token is expired at exp, and the error has the claims', async (t) => {
    try {
      verifyLegacyToken(GOOD, KEY, EXP)
      t.fail('it did not throw')
    } catch (error) {
      if (!(error instanceof ExpiredToken)) throw error
      t.strictSame(error.claims, { q: '???~~~', exp: EXP })
    }
  })

  t.test('the first exp that counts as milliseconds is expired', async (t) => {
    t.throws(() => verifyLegacyToken(withPayload('{"exp":100000000000}'), KEY, NOW), { name: 'ExpiredToken' })
  })
})

t.test('createLegacyToken', async (t) => {
  t.test('createLegacyToken writes claims and times only', async (t) => {
    const token = createLegacyToken({ userId: 7 }, KEY, { lifetimeSeconds: 3600, nowMs: NOW + 0.9 })

    t.equal(token, withPayload(`{"userId":7,"iat":${NOW},"exp":${EXP}}`))
  })

  t.test('verifyLegacyToken accepts a token of createLegacyToken until its lifetime ends', async (t) => {
    const token = createLegacyToken({ name: 'Zoë' }, KEY, { lifetimeSeconds: 60, nowMs: NOW })

    t.strictSame(verifyLegacyToken(token, KEY, NOW + 59_999), { name: 'Zoë', iat: NOW, exp: NOW + 60_000 })
    t.throws(() => verifyLegacyToken(token, KEY, NOW + 60_000), { name: 'ExpiredToken' })
  })

  t.test('createLegacyToken uses the system clock by default', async (t) => {
    const before = Date.now()
    const { exp } = verifyLegacyToken(createLegacyToken({}, KEY, { lifetimeSeconds: 600 }), KEY)
    const after = Date.now()

    t.ok(exp >= before + 600_000 && exp <= after + 600_000)
  })

  t.test('createLegacyToken overwrites the times of the claims', async (t) => {
    const token = createLegacyToken({ exp: EXP * 2, iat: 1 }, KEY, { lifetimeSeconds: 3600, nowMs: NOW })

    t.strictSame(verifyLegacyToken(token, KEY, NOW), { iat: NOW, exp: EXP })
  })

  for (const lifetimeSeconds of [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.test(`createLegacyToken rejects a lifetime of ${lifetimeSeconds}`, async (t) => {
      t.throws(() => createLegacyToken({}, KEY, { lifetimeSeconds, nowMs: NOW }), RangeError)
    })
  }
})
