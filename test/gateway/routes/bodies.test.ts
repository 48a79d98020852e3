import { once } from 'node:events'
import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { urlOf } from '../../helper/address.js'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'
import type { HttpResponse, Message } from '../../helper/http.js'
import { detailsOf } from '../../helper/http.js'

const LIMIT = 1024 * 1024

const json = { 'content-type': 'application/json' }
const signedIn = { ...browserHeaders(), ...json }

const shared = await startGateway(t, {
  hasAllRoutes: true,
  env: { TRUST_PROXY: 'loopback', LOGIN_REQUEST_FIELDS: 'name,capacity' }
})

let clients = 0

/** From a different address each time, so that the login limit does not apply. */
const sendRequest = (path: string, message: Message, gateway: TestGateway = shared): Promise<HttpResponse> => {
  gateway.backend.requests.length = 0
  clients += 1
  const headers = { 'x-forwarded-for': `10.0.${clients >> 8}.${clients & 255}`, ...message.headers }
  return gateway.send(path, { method: 'POST', ...message, headers })
}

/** A zone has one required field, `name`, and may have any others. */
const createZone = (body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<HttpResponse> =>
  sendRequest('/api/zones', { headers: { ...signedIn, ...headers }, body })

const assertRejected = (t: Test, response: HttpResponse, status: number, code: string, gateway = shared): void => {
  t.equal(response.status, status)
  t.equal(response.code, code)
  t.same(gateway.backend.requests, [], 'nothing reached the backend')
}

t.test('the backend gets the validated value', async (t) => {
  const CASES: readonly (readonly [name: string, sent: string, value: object])[] = [
    ['with spaces', '{ "name" : "a" , "x" : [ 1 , 2 ] }', { name: 'a', x: [1, 2] }],
    ['over several lines', '\r\n{\n\t"name": "a"\n}\n', { name: 'a' }],
    ['with unnecessary escapes', '{"n\\u0061me":"\\u0061\\/b"}', { name: 'a/b' }],
    [
      'with characters of many scripts',
      '{"name":"é ж 鍵 🔑 \u2028","ключ 🔑":1}',
      { name: 'é ж 鍵 🔑 \u2028', 'ключ 🔑': 1 }
    ],
    ['with necessary escapes', '{"name":"\\u0000\\n\\"\\\\"}', { name: '\0\n"\\' }],
    ['with lone surrogates', '{"name":"\\ud83d","\\udd11":1}', { name: '\ud83d', '\udd11': 1 }],
    ['with an empty key', '{"name":"a","":1}', { name: 'a', '': 1 }],
    [
      'with keys that are properties of every object',
      '{"name":"a","toString":1,"toJSON":"x","constructor":2}',
      { name: 'a', toString: 1, toJSON: 'x', constructor: 2 }
    ],
    ['with numbers as keys', '{"10":1,"name":"a","9":2}', { 10: 1, name: 'a', 9: 2 }],
    [
      'with numbers in other spellings',
      '{"name":"a","capacity":1.2E1,"x":1.50,"y":-0.0}',
      { name: 'a', capacity: 12, x: 1.5, y: 0 }
    ],
    ['with a null that the schema allows', '{"name":"a","capacity":null}', { name: 'a', capacity: null }],
    ['with a byte order mark', '\ufeff{"name":"a"}', { name: 'a' }],
    ['with a key twice', '{"name":"first","name":"last"}', { name: 'last' }],
    ['with a key twice, once escaped', '{"name":"first","n\\u0061me":"last"}', { name: 'last' }],
    ['with a key twice, of which the last is valid', '{"name":5,"name":"last"}', { name: 'last' }]
  ]
  for (const [name, sent, value] of CASES) {
    t.test(`a body ${name} is forwarded as its value`, async (t) => {
      const response = await createZone(sent)

      t.equal(response.status, 200)
      const [request] = shared.backend.requests
      t.same(JSON.parse(request?.body ?? ''), value)
      t.equal(request?.body, JSON.stringify(JSON.parse(request?.body ?? '')), 'the forwarded body is canonical JSON')
      t.equal(request?.headers['content-length'], String(Buffer.byteLength(request?.body ?? '')))
    })

    if (Object.keys(value).some((field) => !['name', 'capacity'].includes(field))) continue
    t.test(`a login with a body ${name} is forwarded as its value`, async (t) => {
      const password = `{"password":"p",${sent.slice(sent.indexOf('{') + 1)}`

      const response = await sendRequest('/api/auth/login', { headers: json, body: password })

      t.equal(response.status, 200)
      t.same(JSON.parse(shared.backend.requests[0]?.body ?? ''), { password: 'p', ...value })
    })
  }

  t.test('a body is rejected if the last of two duplicate keys has the wrong type', async (t) => {
    const response = await createZone('{"name":"first","name":5}')

    assertRejected(t, response, 400, 'VALIDATION_FAILED')
  })

  t.test('a chunked body is forwarded with its length', async (t) => {
    const response = await createZone('{"name":"aé🔑"}', { 'transfer-encoding': 'chunked' })

    t.equal(response.status, 200)
    t.same(JSON.parse(shared.backend.requests[0]?.body ?? ''), { name: 'aé🔑' })
    t.equal(shared.backend.requests[0]?.headers['transfer-encoding'], undefined)
  })

  t.test('a body with a thousand nested lists is forwarded', async (t) => {
    const body = `{"name":"a","x":${'['.repeat(1000)}${']'.repeat(1000)}}`

    const response = await createZone(body)

    t.equal(response.status, 200)
    t.equal(shared.backend.requests[0]?.body, body)
  })

  t.test('no defaults are added to a body', async (t) => {
    const response = await sendRequest('/api/users/7/reset-password', { headers: signedIn, body: '{}' })

    t.equal(response.status, 200)
    t.equal(shared.backend.requests[0]?.body, '{}')
  })
})

t.test('a number', async (t) => {
  const REJECTED = [
    '9007199254740993',
    '9007199254740993e0',
    '900719925474099.3e1',
    '0.123456789012345678901',
    '0.12345678901234567',
    '12345678.123456789',
    '1e-400',
    '4.9e-324',
    '0.1000000000000000055511151231257827',
    '-9007199254740993',
    '12345678901234567890',
    '9007199254740993.0',
    `1${'0'.repeat(400)}`,
    '1e400',
    '-1E+400',
    '0.1e310'
  ]
  const POSITIONS: readonly (readonly [string, (number: string) => string])[] = [
    ['in a field that we know', (number) => `{"name":"a","capacity":${number}}`],
    ['in a field that we do not know', (number) => `{"name":"a","x":${number}}`],
    ['deep inside', (number) => `{"name":"a","metadata":{"list":[0,{"x":[${number}]}]}}`],
    ['after a text that ends in a backslash', (number) => `{"name":"\\\\","x":${number}}`],
    ['after a text with a quote in it', (number) => `{"name":"\\"","x":${number}}`]
  ]
  for (const number of REJECTED) {
    for (const [position, bodyWith] of POSITIONS) {
      t.test(`a number that a double cannot represent is rejected ${position}: ${number.slice(0, 24)}`, async (t) => {
        const response = await createZone(bodyWith(number))

        assertRejected(t, response, 400, 'VALIDATION_FAILED')
        t.equal(detailsOf(response).length, 1)
      })
    }
  }

  for (const value of [
    '9007199254740991',
    '-9007199254740991',
    '9007199254740992',
    '100000000000000000000',
    '1e20',
    '1.50000000000000000000',
    '0.5000000000000000',
    '5e-324',
    '0e999999999999999999999',
    '0.0000000000000000000000000',
    '12345678.12345678',
    '1.7976931348623157e308',
    '0.12345678901234566',
    '-0.000001234567890123456',
    '[1,2,3]',
    '"9007199254740993"',
    '"e400"',
    '"1e400"',
    '"\\"9007199254740993"',
    '"\\\\\\"1e400\\\\"',
    '{"9007199254740993":1}'
  ]) {
    t.test(`an exact number or a text is forwarded: ${value}`, async (t) => {
      const response = await createZone(`{"name":"a","x":${value}}`)

      t.equal(response.status, 200)
      t.same(JSON.parse(shared.backend.requests[0]?.body ?? '').x, JSON.parse(value))
    })
  }
})

t.test('values are not coerced', async (t) => {
  const CASES: readonly (readonly [title: string, path: string, body: unknown, field: string])[] = [
    ['a text with digits for an integer', '/api/zones', { name: 'a', capacity: '5' }, '/capacity'],
    ['a text with digits for a number', '/api/zones', { name: 'a', radius: '5.5' }, '/radius'],
    ['a fraction for an integer', '/api/zones', { name: 'a', capacity: 5.5 }, '/capacity'],
    ['a number for a text', '/api/zones', { name: 5 }, '/name'],
    ['null for a text', '/api/zones', { name: null }, '/name'],
    ['false for a text', '/api/zones', { name: false }, '/name'],
    ['an empty text for a name', '/api/zones', { name: '' }, '/name'],
    ['a list with one text for a text', '/api/zones', { name: ['a'] }, '/name'],
    ['an object for a text', '/api/zones', { name: { toString: 'a' } }, '/name'],
    ['a text for true', '/api/zones', { name: 'a', isExit: 'true' }, '/isExit'],
    ['1 for true', '/api/zones', { name: 'a', isExit: 1 }, '/isExit'],
    ['0 for false', '/api/zones', { name: 'a', isExit: 0 }, '/isExit'],
    ['an empty text for a number or null', '/api/zones', { name: 'a', capacity: '' }, '/capacity'],
    ['a text for an object', '/api/zones', { name: 'a', metadata: '{}' }, '/metadata'],
    ['a list for an object', '/api/zones', { name: 'a', metadata: [] }, '/metadata'],
    ['a text for a list', '/api/assets', { name: 'a', tags: 'x' }, '/tags'],
    ['a text with digits inside a list', '/api/zones', { name: 'a', polygon: [{ x: '1', y: 2 }] }, '/polygon'],
    ['an id for a list of ids', '/api/personnel/bulk-activate', { ids: 7 }, '/ids'],
    ['an empty list of ids', '/api/personnel/bulk-activate', { ids: [] }, '/ids']
  ]
  for (const [title, path, body, field] of CASES) {
    t.test(`a body with ${title} is rejected`, async (t) => {
      const response = await sendRequest(path, { headers: signedIn, body: JSON.stringify(body) })

      assertRejected(t, response, 400, 'VALIDATION_FAILED')
      t.same(
        detailsOf(response).map(({ path }) => path),
        [field]
      )
    })
  }
})

t.test('a deeply nested body', async (t) => {
  const deep = (open: string, close: string, count: number) => `${open.repeat(count)}1${close.repeat(count)}`
  const CASES: readonly (readonly [title: string, path: string, body: string, code: string])[] = [
    ['lists in an unknown field', '/api/zones', `{"name":"a","x":${deep('[', ']', 500_000)}}`, 'VALIDATION_FAILED'],
    [
      'lists in a known one',
      '/api/zones',
      `{"name":"a","metadata":{"x":${deep('[', ']', 500_000)}}}`,
      'VALIDATION_FAILED'
    ],
    ['lists of the wrong type', '/api/zones', `{"name":${deep('[', ']', 500_000)}}`, 'VALIDATION_FAILED'],
    ['objects', '/api/zones', `{"name":"a","x":${deep('{"a":', '}', 170_000)}}`, 'VALIDATION_FAILED'],
    ['lists and nothing else', '/api/zones', deep('[', ']', 500_000), 'VALIDATION_FAILED'],
    ['arrays that are not closed', '/api/zones', '['.repeat(1_000_000), 'MALFORMED_BODY'],
    [
      'objects around a prototype',
      '/api/zones',
      `{"x":${deep('{"a":', '}', 150_000).replace('1', '{"__proto__":1}')}}`,
      'MALFORMED_BODY'
    ],
    ['a note that is not needed', '/api/users/7/unlock', `{"x":${deep('[', ']', 500_000)}}`, 'VALIDATION_FAILED'],
    ['a sign-in', '/api/auth/login', `{"password":"p","x":${deep('[', ']', 500_000)}}`, 'VALIDATION_FAILED']
  ]
  for (const [title, path, body, code] of CASES) {
    t.test(`a deeply nested body is rejected: ${title}`, async (t) => {
      t.ok(body.length <= LIMIT, 'the body is within the limit')

      assertRejected(t, await sendRequest(path, { headers: signedIn, body }), 400, code)
    })
  }
})

t.test('a body with many quotes', async (t) => {
  const digits = '1234567890123456'

  // A regular expression that matches pairs of quotes would have quadratic cost here and exceed the test timeout.
  t.test('a body with unbalanced quotes is rejected', async (t) => {
    assertRejected(t, await createZone(`${digits}"${'\\"'.repeat(500_000)}`), 400, 'MALFORMED_BODY')
  })

  t.test('a body with many escaped quotes is forwarded', async (t) => {
    const body = `{"name":"a","x":"${'\\"'.repeat(500_000)}","n":${digits}}`

    t.equal((await createZone(body)).status, 200)
    t.equal(shared.backend.requests[0]?.body, body)
  })

  t.test('a body with a very long text is forwarded', async (t) => {
    const gateway = await startGateway(t, { env: { BODY_LIMIT: '16MiB' } })
    const body = `{"name":"a","n":${digits},"x":"${'a'.repeat(12 * LIMIT)}"}`

    const response = await sendRequest('/api/zones', { headers: signedIn, body }, gateway)

    t.equal(response.status, 200)
    t.ok(gateway.backend.requests[0]?.body === body)
  })
})

t.test('BODY_LIMIT', async (t) => {
  const gateway = await startGateway(t, {
    env: { BODY_LIMIT: '1KiB', TRUST_PROXY: 'loopback', LOGIN_REQUEST_FIELDS: 'name' }
  })
  const bodyOf = (bytes: number) => '{"password":"","name":"é"}'.replace('""', `"${'x'.repeat(bytes - 27)}"`)

  for (const path of ['/api/zones', '/api/auth/login']) {
    for (const [title, headers] of [
      ['with a length', {}],
      ['without a length', { 'transfer-encoding': 'chunked' }]
    ] as const) {
      t.test(`a body one byte over BODY_LIMIT is rejected ${title}: ${path}`, async (t) => {
        const response = await sendRequest(path, { headers: { ...signedIn, ...headers }, body: bodyOf(1025) }, gateway)

        assertRejected(t, response, 413, 'BODY_TOO_LARGE', gateway)
      })

      t.test(`a body of exactly BODY_LIMIT is forwarded ${title}: ${path}`, async (t) => {
        const response = await sendRequest(path, { headers: { ...signedIn, ...headers }, body: bodyOf(1024) }, gateway)

        t.equal(Buffer.byteLength(bodyOf(1024)), 1024)
        t.equal(response.status, 200)
        t.equal(gateway.backend.requests[0]?.body, bodyOf(1024))
      })
    }
  }
})

t.test('UPLOAD_LIMIT', async (t) => {
  t.test('a chunked form over UPLOAD_LIMIT is rejected, and the backend request is cancelled', async (t) => {
    const server = createServer((request) => request.on('error', () => undefined).resume())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => server.close())
    const BACKEND_URL = urlOf(server)
    const gateway = await startGateway(t, { env: { UPLOAD_LIMIT: '1KiB', BACKEND_URL } })
    let whole = false
    server.on('request', (request) => request.on('end', () => (whole = true)))
    const headers = {
      ...browserHeaders(),
      'content-type': 'multipart/form-data; boundary=edge',
      'transfer-encoding': 'chunked',
      // Expected: the gateway closes the connection.
      connection: 'keep-alive'
    }

    const response = await sendRequest('/api/personnel/7/photo', { headers, body: 'x'.repeat(1025) }, gateway)

    t.equal(response.status, 413)
    t.equal(response.code, 'BODY_TOO_LARGE')
    t.equal(response.headers.connection, 'close')
    t.equal(whole, false, 'the backend never has it whole')
  })
})

t.test('a content type', async (t) => {
  const body = '{"name":"a"}'

  const REJECTED: readonly (readonly [title: string, headers: Record<string, string>, body?: string | Buffer])[] = [
    ['of plain text', { 'content-type': 'text/plain' }],
    ['of a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['of a form with files', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['of text that is JSON', { 'content-type': 'text/json' }],
    ['that only begins like JSON', { 'content-type': 'application/jsonx' }],
    ['of JSON that is no application', { 'content-type': 'text/vnd.api+json' }],
    ['of a type that only contains JSON', { 'content-type': 'application/vnd.api+jsonx' }],
    ['of a suffix without a name', { 'content-type': 'application/+json' }],
    ['of another kind of JSON in UTF-16', { 'content-type': 'application/vnd.api+json; charset=utf-16' }],
    ['of several', { 'content-type': 'text/plain, application/json' }],
    ['that is garbage', { 'content-type': 'garbage;;' }],
    ['that is empty', { 'content-type': '' }],
    ['in UTF-16', { 'content-type': 'application/json; charset=utf-16' }, Buffer.from(body, 'utf16le')],
    ['in Latin-1', { 'content-type': 'application/json; charset=ISO-8859-1' }],
    ['in UTF-16 in quotes', { 'content-type': 'application/json; charset="utf-16"' }],
    ['in UTF-16 after another parameter', { 'content-type': 'application/json; v=1;CHARSET=utf-16' }],
    ['in two charsets', { 'content-type': 'application/json; charset=utf-8; charset=utf-16' }],
    ['in UTF-16 behind a quoted decoy', { 'content-type': 'application/json; v="; charset=utf-8"; charset=utf-16' }],
    ['in UTF-16 the long way', { 'content-type': "application/json; charset*=utf-8'en'utf-16" }],
    ['that is packed', { 'content-encoding': 'gzip' }, gzipSync(body)],
    ['that claims to be packed', { 'content-encoding': 'br' }],
    ['that is packed twice', { 'content-encoding': 'identity, gzip' }, gzipSync(body)]
  ]
  for (const [title, headers, bytes = body] of REJECTED) {
    t.test(`the content type is rejected: ${title}`, async (t) => {
      assertRejected(t, await createZone(bytes, headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
    })
  }

  for (const headers of [
    { 'content-type': 'application/json; charset=utf-8' },
    { 'content-type': 'Application/JSON;Charset="UTF-8"' },
    { 'content-type': 'application/json; charset=utf8' },
    { 'content-encoding': 'identity' }
  ]) {
    t.test(`the content type of JSON in UTF-8 is accepted: ${Object.values(headers)}`, async (t) => {
      t.equal((await createZone(body, headers)).status, 200)
      t.equal(shared.backend.requests[0]?.body, body)
    })
  }

  for (const [sent, forwarded] of [
    ['application/vnd.api+json', 'application/vnd.api+json'],
    ['application/json-patch+json', 'application/json-patch+json'],
    ['Application/Merge-Patch+JSON; charset=utf-8', 'application/merge-patch+json'],
    ['application/problem.a+b+json; v="1"', 'application/problem.a+b+json']
  ] as const) {
    t.test(`a content type with +json is forwarded: ${sent}`, async (t) => {
      t.equal((await createZone(body, { 'content-type': sent })).status, 200)
      t.equal(shared.backend.requests[0]?.body, body)
      t.equal(shared.backend.requests[0]?.headers['content-type'], forwarded)
    })
  }
})

t.test('invalid UTF-8', async (t) => {
  const BYTES: readonly (readonly [title: string, bytes: readonly number[]])[] = [
    ['a byte that never occurs', [0xff]],
    ['a letter of Latin-1', [0xe9]],
    ['a character that breaks off', [0xf0, 0x9f, 0x94]],
    ['a character in too many bytes', [0xc0, 0x80]],
    ['half a character', [0xed, 0xa0, 0xbd]],
    ['a character beyond the last', [0xf4, 0x90, 0x80, 0x80]]
  ]
  const around = (before: string, bytes: readonly number[], after: string) =>
    Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])

  for (const [title, bytes] of BYTES) {
    for (const framing of [{}, { 'transfer-encoding': 'chunked' }]) {
      const suffix = 'transfer-encoding' in framing ? ', without a length' : ''
      t.test(`invalid UTF-8 in a value is rejected: ${title}${suffix}`, async (t) => {
        assertRejected(t, await createZone(around('{"name":"', bytes, '"}'), framing), 400, 'MALFORMED_BODY')
      })
    }

    t.test(`invalid UTF-8 in a key is rejected: ${title}`, async (t) => {
      assertRejected(t, await createZone(around('{"name":"a","', bytes, '":1}')), 400, 'MALFORMED_BODY')
    })
  }
})

t.test('an action with an optional body', async (t) => {
  const ACTIONS: readonly (readonly [method: string, path: string])[] = [
    ['POST', '/api/users/7/unlock'],
    ['POST', '/api/users/7/reset-password'],
    ['POST', '/api/weather/refresh'],
    ['POST', '/api/negotiate'],
    ['POST', '/api/auth/logout'],
    ['DELETE', '/api/zones/7'],
    ['DELETE', '/api/personnel/7/photo']
  ]
  for (const [method, path] of ACTIONS) {
    for (const [title, message] of [
      ['nothing', { headers: browserHeaders() }],
      ['nothing, which it calls JSON', { headers: signedIn }],
      ['nothing, of length zero', { headers: signedIn, body: '' }],
      ['nothing, in no pieces', { headers: { ...signedIn, 'transfer-encoding': 'chunked' }, body: '' }]
    ] as const) {
      t.test(`an action accepts ${title}: ${method} ${path}`, async (t) => {
        const response = await sendRequest(path, { method, ...message })

        t.equal(response.status, 200)
        t.match(shared.backend.requests, [{ method, url: path, body: '' }])
      })
    }

    t.test(`an action accepts an empty object: ${method} ${path}`, async (t) => {
      t.equal((await sendRequest(path, { method, headers: signedIn, body: '{}' })).status, 200)
      t.match(shared.backend.requests, [{ method, url: path, body: '{}' }])
    })

    for (const [title, body, code] of [
      ['null', 'null', 'VALIDATION_FAILED'],
      ['spaces', ' \r\n\t', 'MALFORMED_BODY'],
      ['a lone byte order mark', '\ufeff', 'MALFORMED_BODY'],
      ['an empty list', '[]', 'VALIDATION_FAILED'],
      ['false', 'false', 'VALIDATION_FAILED'],
      ['zero', '0', 'VALIDATION_FAILED'],
      ['an empty text', '""', 'VALIDATION_FAILED']
    ] as const) {
      t.test(`an action rejects ${title}: ${method} ${path}`, async (t) => {
        assertRejected(t, await sendRequest(path, { method, headers: signedIn, body }), 400, code)
      })
    }
  }
})

t.test('an update without fields is rejected', async (t) => {
  for (const path of ['/api/zones/7', '/api/battery/thresholds', '/api/mgmt/settings/ble']) {
    assertRejected(
      t,
      await sendRequest(path, { method: 'PUT', headers: signedIn, body: '{}' }),
      400,
      'VALIDATION_FAILED'
    )
  }
})

t.test('a read', async (t) => {
  t.test('a read is forwarded without its body', async (t) => {
    const response = await sendRequest('/api/zones', { method: 'GET', headers: signedIn, body: '{"name":' })

    t.equal(response.status, 200)
    t.match(shared.backend.requests, [{ method: 'GET', url: '/api/zones', body: '' }])
    t.equal(shared.backend.requests[0]?.headers['content-type'], undefined)
  })
})

t.test('field errors', async (t) => {
  const SECRET = 'S3cret-of-a-browser'

  t.test('every invalid field is reported', async (t) => {
    const response = await createZone(`{"name":"","capacity":"${SECRET}","isExit":[],"center":{"x":1}}`)

    assertRejected(t, response, 400, 'VALIDATION_FAILED')
    t.same(
      detailsOf(response)
        .map(({ path }) => path)
        .toSorted(),
      ['/capacity', '/center', '/isExit', '/name']
    )
    for (const { message, ...rest } of detailsOf(response)) {
      t.match(message, /^[a-z]/)
      t.same(Object.keys(rest), ['path'])
    }
  })

  t.test('at most twenty field errors are reported', async (t) => {
    const ids = Array.from({ length: 10_000 }, () => true)

    const response = await sendRequest('/api/personnel/bulk-activate', {
      headers: signedIn,
      body: JSON.stringify({ ids })
    })

    assertRejected(t, response, 400, 'VALIDATION_FAILED')
    t.same(
      detailsOf(response).map(({ path }) => path),
      Array.from({ length: 20 }, (_, index) => `/ids/${index}`)
    )
  })

  const BODIES: readonly (readonly [title: string, path: string, body: string])[] = [
    ['a value of a wrong type', '/api/zones', `{"name":"a","capacity":"${SECRET}"}`],
    ['a value that is too long', '/api/zones', `{"name":"${SECRET.repeat(100)}"}`],
    ['a value that a pattern refuses', '/api/users', `{"email":"${SECRET}"}`],
    ['a password that is too short, as a number', '/api/users/7/reset-password', '{"newPassword":7777777}'],
    ['a value deep inside', '/api/zones', `{"name":"a","polygon":[{"x":"${SECRET}","y":1}]}`],
    ['a value in a list', '/api/personnel/bulk-activate', `{"ids":[{"${SECRET}":"${SECRET}"}]}`],
    ['JSON that breaks off', '/api/auth/login', `{"password":"${SECRET}`],
    ['JSON with a stray word', '/api/auth/login', `{"password":${SECRET}}`],
    ['a key that is a prototype', '/api/auth/login', `{"password":"${SECRET}","__proto__":{"${SECRET}":1}}`],
    ['a body that is no object', '/api/auth/login', `"${SECRET}"`],
    ['a number that is too large', '/api/auth/login', `{"password":"${SECRET}","x":77777777777777777777}`],
    ['a field that only the server may send', '/api/auth/login', `{"password":"${SECRET}","groups":["${SECRET}"]}`]
  ]
  for (const [title, path, body] of BODIES) {
    t.test(`field errors and log do not contain the sent value: ${title}`, async (t) => {
      shared.logs.length = 0

      const response = await sendRequest(path, { headers: signedIn, body })

      t.equal(response.status, 400)
      t.notMatch(response.body, /S3cret|7777777/)
      t.ok(shared.logs.length > 0, 'there is a log')
      t.notMatch(JSON.stringify(shared.logs), /S3cret|7777777/)
    })
  }
})

t.test('a login with a field that only the gateway may send', async (t) => {
  for (const path of ['/api/auth/login', '/api/auth/backend-login']) {
    for (const field of ['okta', 'groups']) {
      for (const value of ['true', 'false', 'null', '[]', '["admins"]', '""']) {
        t.test(`a login is rejected: ${path} with ${field} = ${value}`, async (t) => {
          const body = `{"email":"ada@example.com","password":"x","${field}":${value}}`

          const response = await sendRequest(path, { headers: json, body })

          assertRejected(t, response, 400, 'VALIDATION_FAILED')
          t.same(
            detailsOf(response).map(({ path }) => path),
            [`/${field}`]
          )
        })
      }

      t.test(`a login is rejected with an escaped field name: ${path} with ${field}`, async (t) => {
        const escaped = `\\u${field.charCodeAt(0).toString(16).padStart(4, '0')}${field.slice(1)}`
        const body = `{"email":"ada@example.com","password":"x","${escaped}":true}`

        assertRejected(t, await sendRequest(path, { headers: json, body }), 400, 'VALIDATION_FAILED')
      })
    }

    t.test(`a login with an exchange field and no password is rejected: ${path}`, async (t) => {
      const body = '{"email":"ada@example.com","name":"Ada","okta":true,"groups":["admins"]}'

      const response = await sendRequest(path, { headers: json, body })

      assertRejected(t, response, 400, 'VALIDATION_FAILED')
      t.same(
        detailsOf(response)
          .map(({ path }) => path)
          .toSorted(),
        ['/groups', '/okta', '/password']
      )
    })
  }
})
