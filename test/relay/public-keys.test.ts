import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { send } from '../helper/http.js'
import { newSigningKey, pemOf, publicJwk, type SigningKey, signToken, startJwksServer } from '../helper/jwks-server.js'
import { connectedClient, openClient } from '../helper/raw-client.js'
import { startRelay } from '../helper/relay.js'
import { type ConfigFile, HMAC_SECRET, relayToken } from '../helper/relay-rules.js'

const RSA = newSigningKey('RS256')
const EC = newSigningKey('ES256')
const ED = newSigningKey('EdDSA')
const INVALID = '3500 invalid token'
const CONNECTED = { connect: { client: String } }
const RETRY = { error: { code: 100, temporary: true } }

const connect = async (t: Test, url: string, token: string): Promise<unknown> => {
  const client = await openClient(t, url)
  client.send({ id: 1, connect: { token } })
  return Promise.race([client.next(), client.closed])
}

const withToken = (token: object, more: object = {}): ConfigFile => ({
  client: { token, ...more },
  channel: { namespaces: [{ name: 'room' }] }
})

/** A relay whose monotonic clock, which is the clock of the key cache, can be advanced. Tokens do not expire by that. */
const startWithKeySet = async (t: Test, address: string) => {
  let shiftMs = 0
  let heldAtMs: number | null = null
  const { url } = await startRelay(
    t,
    withToken({ jwks_public_endpoint: address }, { ping_interval: '7200s' }),
    {},
    { monotonicMs: () => (heldAtMs ?? performance.now()) + shiftMs }
  )
  return {
    url,
    advance: (ms: number): void => {
      shiftMs += ms
    },
    /** From now on time passes only by `advance`. */
    hold: (): void => {
      heldAtMs = performance.now()
    }
  }
}

const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A token with an HMAC signature made with `secret`, and any header. */
const hmacToken = (secret: string, header: object, hash = 'sha256'): string => {
  const signed = `${base64url(header)}.${base64url({ sub: '42', exp: Math.floor(Date.now() / 1000) + 3600 })}`
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`
}

/** A token with the right header and claims and the signature of another one. */
const withForeignSignature = async (key: SigningKey): Promise<string> => {
  const [header, payload] = (await signToken(key, { sub: '1' })).split('.')
  return `${header}.${payload}.${(await signToken(key, { sub: '2' })).split('.')[2]}`
}

t.test('HMAC secrets', async (t) => {
  const previous = 'the secret of relay tokens before the current one'
  const { url } = await startRelay(t, withToken({ hmac_previous_secret_key: previous }))
  for (const [alg, hash] of [
    ['HS256', 'sha256'],
    ['HS384', 'sha384'],
    ['HS512', 'sha512']
  ] as const)
    t.test(`a token with ${alg} is accepted with the secret and with the previous one`, async (t) => {
      t.match(await connect(t, url, hmacToken(HMAC_SECRET, { alg }, hash)), CONNECTED)
      t.match(await connect(t, url, hmacToken(previous, { alg }, hash)), CONNECTED)
      t.equal(await connect(t, url, hmacToken('another secret', { alg }, hash)), INVALID)
      t.equal(await connect(t, url, hmacToken(HMAC_SECRET, { alg }, 'sha224')), INVALID)
    })
})

t.test('static public keys', async (t) => {
  const { url } = await startRelay(
    t,
    withToken({ rsa_public_key: pemOf(RSA), ecdsa_public_key: pemOf(EC), eddsa_public_key: pemOf(ED) })
  )

  t.test('tokens signed with the RSA key are accepted with RS256, RS384 and RS512', async (t) => {
    for (const algorithm of ['RS256', 'RS384', 'RS512'])
      t.match(await connect(t, url, await signToken({ ...RSA, algorithm })), CONNECTED, algorithm)
  })

  t.test('tokens signed with the ECDSA key are accepted, also without a key id', async (t) => {
    t.match(await connect(t, url, await signToken(EC)), CONNECTED)
    t.match(await connect(t, url, await signToken(EC, { sub: '42' }, {})), CONNECTED)
  })

  t.test('tokens signed with the Ed25519 key are accepted, under both names of the algorithm', async (t) => {
    t.match(await connect(t, url, await signToken(ED)), CONNECTED)
    t.match(await connect(t, url, await signToken({ ...ED, algorithm: 'Ed25519' }, { sub: '42' }, {})), CONNECTED)
  })

  t.test('HS256 tokens are still accepted', async (t) => {
    t.match(await connect(t, url, relayToken({ sub: '42' })), CONNECTED)
  })

  t.test('access tokens with the type at+jwt are accepted', async (t) => {
    t.match(await connect(t, url, await signToken(RSA, { sub: '42' }, { typ: 'at+jwt' })), CONNECTED)
  })

  const FORGED: readonly (readonly [name: string, token: () => Promise<string> | string])[] = [
    ['another RSA key', () => signToken(newSigningKey('RS256'))],
    ['another ECDSA key', () => signToken(newSigningKey('ES256'))],
    ['an ECDSA key on another curve', () => signToken(newSigningKey('ES384'))],
    ['PS256 with the right RSA key', () => signToken({ ...RSA, algorithm: 'PS256' })],
    ['another Ed25519 key', () => signToken(newSigningKey('EdDSA'))],
    ['HS256 with the RSA public key as the secret', () => hmacToken(pemOf(RSA), { alg: 'HS256', typ: 'JWT' })],
    ['HS256 with the trimmed RSA public key', () => hmacToken(pemOf(RSA).trim(), { alg: 'HS256' })],
    ['HS256 with the ECDSA public key as the secret', () => hmacToken(pemOf(EC), { alg: 'HS256', kid: EC.id })],
    ['HS512 with the RSA public key as the secret', () => hmacToken(pemOf(RSA), { alg: 'HS512' }, 'sha512')],
    ['HS384 with the Ed25519 public key as the secret', () => hmacToken(pemOf(ED), { alg: 'HS384' }, 'sha384')],
    ['RS256 in the header and an HMAC signature', () => hmacToken(pemOf(RSA), { alg: 'RS256' })],
    ['alg none', () => `${base64url({ alg: 'none' })}.${base64url({ sub: '42', exp: 9e9 })}.AA`],
    ['the signature of another token', () => withForeignSignature(RSA)],
    [
      'a key of its own in the header',
      () => signToken(newSigningKey('RS256'), { sub: '42' }, { jku: 'http://evil.example' })
    ]
  ]
  for (const [name, token] of FORGED) {
    t.test(`a token with ${name} is closed with 3500`, async (t) => {
      t.equal(await connect(t, url, await token()), INVALID)
    })
  }

  t.test('an expired token of a public key receives error 109', async (t) => {
    const token = await signToken(RSA, { sub: '42' })
    const relay = await startRelay(t, withToken({ rsa_public_key: pemOf(RSA) }))
    relay.step(2 * 3600_000)
    t.match(await connect(t, relay.url, token), { error: { code: 109 } })
  })

  t.test('refresh and subscription tokens may be signed with a public key', async (t) => {
    const client = await connectedClient(t, url)
    const token = await signToken(EC)
    t.match(await client.request({ id: 2, refresh: { token } }), { refresh: { expires: true } })
    const subscription = await signToken(RSA, { sub: '42', channel: 'room:1' })
    t.match(await client.request({ id: 3, subscribe: { channel: 'room:1', token: subscription } }), { subscribe: {} })
    t.match(await client.request({ id: 4, sub_refresh: { channel: 'room:1', token: subscription } }), {
      sub_refresh: { expires: true }
    })
    client.send({ id: 5, refresh: { token: await signToken(newSigningKey('RS256')) } })
    t.equal(await client.closed, INVALID)
  })
})

t.test('without an HMAC secret, HMAC tokens are rejected if a public key is configured', async (t) => {
  const { url } = await startRelay(t, withToken({ rsa_public_key: pemOf(RSA) }), { REALTIME_HMAC_SECRET: '' })
  t.match(await connect(t, url, await signToken(RSA)), CONNECTED)
  t.equal(await connect(t, url, relayToken({ sub: '42' })), INVALID)
  t.equal(await connect(t, url, hmacToken(pemOf(RSA), { alg: 'HS256' })), INVALID)
  t.equal(await connect(t, url, hmacToken(HMAC_SECRET, { alg: 'HS512' }, 'sha512')), INVALID)
})

t.test('audience, issuer and user id claim', async (t) => {
  const accepts = async (token: object, claims: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const { url } = await startRelay(t, withToken(token))
    return connect(t, url, relayToken(claims))
  }

  t.test('audience_regex accepts a token with one matching audience', async (t) => {
    const rule = { audience_regex: '^web-[0-9]+$' }
    t.match(await accepts(rule, { sub: '42', aud: ['other', 'web-7'] }), CONNECTED)
    t.match(await accepts(rule, { sub: '42', aud: 'web-7' }), CONNECTED)
    t.equal(await accepts(rule, { sub: '42', aud: ['other', 'web-7x'] }), INVALID)
    t.equal(await accepts(rule, { sub: '42', aud: [] }), INVALID)
    t.equal(await accepts(rule, { sub: '42' }), INVALID)
  })

  t.test('issuer_regex accepts named groups in the notation of Go', async (t) => {
    const rule = { issuer_regex: '^https://id.example/(?P<realm>[a-z]+)$' }
    t.match(await accepts(rule, { sub: '42', iss: 'https://id.example/staff' }), CONNECTED)
    t.equal(await accepts(rule, { sub: '42', iss: 'https://id.example/staff/7' }), INVALID)
    t.equal(await accepts(rule, { sub: '42', iss: 7 }), INVALID)
  })

  t.test('issuer_regex has the syntax of RE2, and a long issuer does not keep the relay busy', async (t) => {
    t.match(await accepts({ issuer_regex: '(?i)^STAFF$' }, { sub: '42', iss: 'staff' }), CONNECTED)
    t.equal(await accepts({ issuer_regex: '^(a+)+$' }, { sub: '42', iss: `${'a'.repeat(60)}!` }), INVALID)
  })

  t.test('user_id_claim selects the claim with the user, which may be a number', async (t) => {
    const rule = { user_id_claim: 'user_id' }
    t.match(await accepts(rule, { sub: 'ignored', user_id: 'u7' }), CONNECTED)
    t.match(await accepts(rule, { user_id: 7 }), CONNECTED)
    t.equal(await accepts(rule, { sub: '42', user_id: { id: 7 } }), INVALID)
    t.match(await accepts(rule, { user_id: Number.MAX_SAFE_INTEGER }), CONNECTED)
    t.equal(await accepts(rule, { user_id: Number.MAX_SAFE_INTEGER + 1 }), INVALID, 'the number of several ids')
    t.equal(await accepts(rule, { sub: '42' }), '3507 permission denied')
  })

  t.test('the user of a connection is the one in user_id_claim', async (t) => {
    const { url } = await startRelay(t, withToken({ user_id_claim: 'uid' }))
    const client = await openClient(t, url)
    await client.request({ id: 1, connect: { token: relayToken({ uid: 7 }) } })
    const token = relayToken({ uid: '7', channel: 'room:1' })
    t.match(await client.request({ id: 2, subscribe: { channel: 'room:1', token } }), { subscribe: {} })
  })
})

t.test('separate subscription tokens inherit nothing from connection tokens', async (t) => {
  const separate = { enabled: true, ecdsa_public_key: pemOf(EC), user_id_claim: 'uid', issuer: 'subscriptions' }
  const file = withToken({ rsa_public_key: pemOf(RSA), audience: 'web' }, { subscription_token: separate })
  const { url } = await startRelay(t, file)
  const client = await openClient(t, url)
  t.match(
    await client.request({ id: 1, connect: { token: await signToken(RSA, { sub: '42', aud: 'web' }) } }),
    CONNECTED
  )
  const subscribe = async (id: number, token: string): Promise<unknown> =>
    client.request({ id, subscribe: { channel: `room:${id}`, token } })

  const claims = (id: number) => ({ uid: '42', iss: 'subscriptions', channel: `room:${id}` })
  t.match(await subscribe(2, await signToken(EC, claims(2))), { subscribe: {} })
  t.match(await subscribe(3, await signToken(RSA, claims(3))), { error: { code: 103 } }, 'key of connection tokens')
  t.match(await subscribe(4, relayToken(claims(4))), { error: { code: 103 } }, 'secret of connection tokens')
  t.match(await subscribe(5, await signToken(EC, { ...claims(5), iss: 'other' })), { error: { code: 103 } }, 'issuer')

  t.match(await subscribe(6, 'nonsense'), { error: { code: 103 } }, 'no token')
  const { body: metrics } = await send(url, '/metrics')
  // Those of other algorithms are one with RSA and one with HMAC, for which there is no secret.
  t.match(metrics, 'relay_rejections_total{kind="token",reason="bad-algorithm"} 2')
  t.match(metrics, 'relay_rejections_total{kind="token",reason="malformed"} 1')
})

t.test('a JSON Web Key Set', async (t) => {
  const jwks = await startJwksServer(t)
  const keys = [RSA, EC, newSigningKey('ES384'), newSigningKey('ES512'), newSigningKey('EdDSA')]
  jwks.serve(...(await Promise.all(keys.map((key) => publicJwk(key)))))
  const relay = await startWithKeySet(t, jwks.url)

  for (const key of keys) {
    t.test(`a token with ${key.algorithm} and a key of the set is accepted`, async (t) => {
      t.match(await connect(t, relay.url, await signToken(key)), CONNECTED)
    })
  }

  t.test('the set is loaded once, and again by the first token after 50 minutes, without a wait', async (t) => {
    t.equal(jwks.requests, 1)
    relay.advance(51 * 60_000)
    t.match(await connect(t, relay.url, await signToken(EC)), CONNECTED)
    await eventually(() => jwks.requests === 2)
  })

  t.test('a token without a key id is closed with 3500', async (t) => {
    t.equal(await connect(t, relay.url, await signToken(RSA, { sub: '42' }, {})), INVALID)
    t.equal(await connect(t, relay.url, await signToken(RSA, { sub: '42' }, { kid: '' })), INVALID)
  })

  t.test('a key is used for its own algorithms only', async (t) => {
    t.equal(await connect(t, relay.url, await signToken({ ...newSigningKey('ES256'), id: RSA.id })), INVALID)
    t.equal(await connect(t, relay.url, await signToken({ ...RSA, algorithm: 'PS256' })), INVALID)
    t.equal(await connect(t, relay.url, hmacToken(pemOf(RSA), { alg: 'HS256', kid: RSA.id })), INVALID)
  })
})

t.test('an unknown key id', async (t) => {
  const jwks = await startJwksServer(t)
  jwks.serve(await publicJwk(RSA))
  const relay = await startWithKeySet(t, jwks.url)
  t.match(await connect(t, relay.url, await signToken(RSA)), CONNECTED)
  const added = newSigningKey('ES256', 'added')

  t.test('invented key ids cause one request in a second, and error 100 in between', async (t) => {
    relay.hold()
    relay.advance(1_000)
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, n) => signToken({ ...added, id: `invented-${n}` })))
    const replies = await Promise.all(tokens.map((token) => connect(t, relay.url, token)))
    t.equal(replies.filter((reply) => reply === INVALID).length, 1)
    t.match(
      replies.filter((reply) => reply !== INVALID),
      Array.from({ length: 19 }, () => RETRY)
    )
    t.equal(jwks.requests, 2)
  })

  t.test(
    'a key that is published just after a load is retried with error 100, and accepted after a second',
    async (t) => {
      jwks.serve(await publicJwk(RSA), await publicJwk(added))
      const token = await signToken(added)
      t.match(await connect(t, relay.url, token), RETRY)
      relay.advance(1_000)
      const replies = await Promise.all(Array.from({ length: 10 }, () => connect(t, relay.url, token)))
      for (const reply of replies) t.match(reply, CONNECTED)
      t.equal(jwks.requests, 3)
    }
  )

  t.test('a key that is published while the set is being loaded is retried with error 100', async (t) => {
    relay.advance(1_000)
    const { respond } = jwks
    const later = newSigningKey('ES256', 'later')
    const held = new Promise<() => void>((resolve) => {
      jwks.respond = (request, response) => resolve(() => respond(request, response))
    })
    const first = connect(t, relay.url, await signToken({ ...added, id: 'invented' }))
    const answer = await held
    const second = connect(t, relay.url, await signToken(later))
    await connect(t, relay.url, await signToken(added))
    answer()
    t.equal(await first, INVALID)
    t.match(await second, RETRY)
    jwks.serve(await publicJwk(RSA), await publicJwk(added), await publicJwk(later))
    relay.advance(1_000)
    t.match(await connect(t, relay.url, await signToken(later)), CONNECTED)
  })

  t.test('a key id is retried with error 100 while the endpoint fails, and closed after the next load', async (t) => {
    const token = await signToken({ ...added, id: 'invented' })
    const { respond } = jwks
    jwks.respond = (_request, response) => response.writeHead(500).end()
    relay.advance(6_000)
    for (const reply of [await connect(t, relay.url, token), await connect(t, relay.url, token)]) t.match(reply, RETRY)
    jwks.respond = respond
    relay.advance(6_000)
    t.equal(await connect(t, relay.url, token), INVALID)
  })

  t.test('a key that was removed from the set is rejected from the next load on', async (t) => {
    jwks.serve(await publicJwk(added))
    relay.advance(3601_000)
    t.equal(await connect(t, relay.url, await signToken(RSA)), INVALID)
  })
})

t.test('unusable keys of a set', async (t) => {
  const jwks = await startJwksServer(t)
  jwks.serve()
  const relay = await startWithKeySet(t, jwks.url)
  // Waits until the first load has ended.
  await connect(t, relay.url, await signToken(RSA))
  const secret = Buffer.from('a secret that is not one').toString('base64url')
  const SETS: readonly (readonly [name: string, jwk: object])[] = [
    ['has the use enc', await publicJwk(RSA, { use: 'enc' })],
    ['has no use', await publicJwk(RSA, { use: undefined })],
    ['has no kid', await publicJwk(RSA, { kid: undefined })],
    ['has a numeric kid', { ...(await publicJwk(RSA)), kid: 7 }],
    ['is for another algorithm', await publicJwk(RSA, { alg: 'RS512' })],
    ['has no modulus', await publicJwk(RSA, { n: undefined })],
    ['has a broken modulus', await publicJwk(RSA, { n: '!' })],
    ['has a short modulus', await publicJwk(RSA, { n: 'AQAB' })],
    ['is a secret', { kty: 'oct', k: secret, kid: RSA.id, use: 'sig' }],
    ['is null', JSON.parse('null')]
  ]
  for (const [name, jwk] of SETS) {
    t.test(`a key that ${name} accepts no token`, async (t) => {
      jwks.serve(jwk)
      relay.advance(3601_000)
      t.equal(await connect(t, relay.url, await signToken(RSA)), INVALID)
      t.equal(
        await connect(t, relay.url, hmacToken('a secret that is not one', { alg: 'HS256', kid: RSA.id })),
        INVALID
      )
    })
  }

  t.test('an unusable key does not affect the others', async (t) => {
    jwks.serve(...SETS.map(([, jwk]) => jwk), await publicJwk(EC))
    relay.advance(3601_000)
    t.match(await connect(t, relay.url, await signToken(EC)), CONNECTED)
  })
})

t.test('a JWKS server that fails', async (t) => {
  const jwks = await startJwksServer(t)
  const relay = await startWithKeySet(t, jwks.url)
  const other = await startJwksServer(t)
  other.serve(await publicJwk(RSA))
  const MIB = 1024 * 1024
  const FAILURES: readonly (readonly [name: string, respond: typeof jwks.respond])[] = [
    ['responds with 500', (_request, response) => response.writeHead(500).end('{"keys":[]}')],
    ['redirects to another server', (_request, response) => response.writeHead(302, { location: other.url }).end()],
    ['closes the connection', (request) => request.socket.destroy()],
    ['responds with text', (_request, response) => response.end('<html>')],
    ['responds with a list', (_request, response) => response.end('[]')],
    ['responds with null', (_request, response) => response.end('null')],
    ['has keys that are not a list', (_request, response) => response.end('{"keys":{}}')],
    ['responds with nothing', (_request, response) => response.end()],
    [
      'ends within its response',
      (_request, response) => response.writeHead(200, { 'content-length': 99 }).write('{"k', () => response.destroy())
    ],
    ['responds with a megabyte', (_request, response) => response.end(`{"keys":[],"filler":"${'x'.repeat(MIB)}"}`)]
  ]
  for (const [name, respond] of FAILURES) {
    t.test(`a client receives the temporary error 100 if the server ${name}`, async (t) => {
      jwks.respond = respond
      relay.advance(3601_000)
      t.match(await connect(t, relay.url, await signToken(RSA)), { error: { code: 100, temporary: true } })
    })
  }

  t.test('the response to a redirect is never used', async (t) => {
    t.equal(other.requests, 0)
  })

  t.test('an endless response is cut off', async (t) => {
    let isClosed = false
    jwks.respond = (_request, response) => {
      const chunk = Buffer.alloc(65_536, 'x')
      const write = (): void => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', write).on('close', () => {
        isClosed = true
      })
      write()
    }
    relay.advance(3601_000)
    t.match(await connect(t, relay.url, await signToken(RSA)), { error: { code: 100 } })
    await eventually(() => isClosed)
  })

  t.test('a failed request is followed by a cool-down, and the next one succeeds', async (t) => {
    jwks.respond = (_request, response) => response.writeHead(500).end()
    relay.advance(3601_000)
    const before = jwks.requests
    t.match(await connect(t, relay.url, await signToken(RSA)), { error: { code: 100 } })
    t.match(await connect(t, relay.url, await signToken(RSA)), { error: { code: 100 } })
    t.equal(jwks.requests, before + 1)
    jwks.serve(await publicJwk(RSA))
    relay.advance(6_000)
    t.match(await connect(t, relay.url, await signToken(RSA)), CONNECTED)
  })

  t.test('a refresh while the server fails receives error 100 and keeps the connection', async (t) => {
    const client = await openClient(t, relay.url)
    t.match(await client.request({ id: 1, connect: { token: await signToken(RSA) } }), CONNECTED)
    jwks.respond = (_request, response) => response.writeHead(500).end()
    relay.advance(31_000)
    const refresh = { token: await signToken({ ...RSA, id: 'unknown' }) }
    t.match(await client.request({ id: 2, refresh }), { error: { code: 100, temporary: true } })
    t.match(await client.request({ id: 3, refresh: { token: await signToken(RSA) } }), { refresh: { expires: true } })
  })
})

t.test('while a JWKS server does not respond', async (t) => {
  const jwks = await startJwksServer(t)
  jwks.serve(await publicJwk(RSA))
  const relay = await startWithKeySet(t, jwks.url)
  t.match(await connect(t, relay.url, await signToken(RSA)), CONNECTED)
  jwks.respond = () => undefined
  relay.advance(31_000)
  const waiting = connect(t, relay.url, await signToken({ ...RSA, id: 'unknown' }))
  await eventually(() => jwks.requests === 2)

  t.test('clients with known keys and with HS256 connect at once', async (t) => {
    t.match(await connect(t, relay.url, await signToken(RSA)), CONNECTED)
    t.match(await connect(t, relay.url, relayToken({ sub: '42' })), CONNECTED)
  })

  t.test('clients with unknown keys share the request, which ends with a timeout and error 100', async (t) => {
    const more = await Promise.all(
      Array.from({ length: 5 }, async (_, n) => connect(t, relay.url, await signToken({ ...RSA, id: `unknown-${n}` })))
    )
    for (const reply of [await waiting, ...more]) t.match(reply, { error: { code: 100 } })
    t.equal(jwks.requests, 2)
  })
})
