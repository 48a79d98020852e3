import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ADMIN_PASSWORD, Operator, operator } from '../../helper/admin.js'
import { send, sendRaw } from '../../helper/http.js'
import { startRelay } from '../../helper/relay.js'
import { configOf } from '../../helper/relay-rules.js'

const ON = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD, TRUST_PROXY: 'loopback' }
const MINUTE_MS = 60_000

const API = [
  ['GET', 'session'],
  ['GET', 'live'],
  ['GET', 'channels'],
  ['GET', 'channel?name=floor:1'],
  ['GET', 'map?channel=floor:1'],
  ['POST', 'map/remove'],
  ['GET', 'connections'],
  ['GET', 'config'],
  ['POST', 'publish'],
  ['POST', 'disconnect'],
  ['POST', 'sign-out']
] as const

const problem = (body: string): string => JSON.parse(body).error.code

t.test("without a password there is no operators' page", async (t) => {
  const relay = await startRelay(t)
  for (const path of ['/admin', '/admin/', '/admin/api/session', '/admin/api/sign-in', '/admin/assets/index.js']) {
    t.match(await send(relay.url, path), { status: 404, body: '' }, path)
  }
  t.equal((await new Operator(relay).signIn('')).status, 404, 'a missing password is not an empty one')
})

t.test('sign-in', async (t) => {
  const relay = await startRelay(t, undefined, ON)

  t.test('sign-in sets an HttpOnly SameSite=Strict cookie', async (t) => {
    const { status, headers, body } = await new Operator(relay).signIn()
    t.match({ status, body }, { status: 204, body: '' })
    t.match(
      headers['set-cookie'],
      /^relay_admin=v1\.[\w-]{22}\.p\.\w+\.\w+\.[\w-]{43}; Path=\/admin; HttpOnly; SameSite=Strict$/
    )
  })

  const SECURE: readonly (readonly [string, Record<string, string>, boolean])[] = [
    ['a proxy says https', { 'x-forwarded-proto': 'https' }, true],
    ['a proxy says http', { 'x-forwarded-proto': 'http' }, false],
    ['the page is on https', { origin: 'https://relay.example.com', host: 'relay.example.com' }, true]
  ]
  for (const [name, headers, isSecure] of SECURE) {
    t.test(`the cookie is ${isSecure ? '' : 'not '}Secure if ${name}`, async (t) => {
      const one = new Operator(relay)
      const [cookie = ''] = (await one.signIn(ADMIN_PASSWORD, { headers })).headers['set-cookie'] ?? []
      t.equal(cookie.includes('; Secure'), isSecure)
      relay.advance(2 * MINUTE_MS)
      const [renewed = ''] = (await one.get('session')).headers['set-cookie'] ?? []
      t.equal(renewed.includes('; Secure'), isSecure, 'the renewed cookie has the same attributes')
    })
  }

  const REJECTED: readonly (readonly [title: string, body: string, headers: Record<string, string>, status: number])[] =
    [
      ['a body that is not JSON', 'password', {}, 400],
      ['no password', '{}', {}, 400],
      ['a password that is a list', '{"password":["a"]}', {}, 400],
      ['more than a password', `{"password":"${ADMIN_PASSWORD}","x":1}`, {}, 400],
      ['a form', `password=${ADMIN_PASSWORD}`, { 'content-type': 'application/x-www-form-urlencoded' }, 415],
      ['a long body', `{"password":"${'x'.repeat(10_000)}"}`, {}, 413],
      [
        'a page on another origin',
        JSON.stringify({ password: ADMIN_PASSWORD }),
        { origin: 'https://evil.example' },
        403
      ],
      ['a sandboxed page', JSON.stringify({ password: ADMIN_PASSWORD }), { origin: 'null' }, 403],
      ['another subdomain', JSON.stringify({ password: ADMIN_PASSWORD }), { 'sec-fetch-site': 'same-site' }, 403]
    ]
  for (const [title, body, headers, status] of REJECTED) {
    t.test(`sign-in rejects ${title}`, async (t) => {
      const response = await new Operator(relay).post('sign-in', body, { headers })
      t.equal(response.status, status)
      t.notOk(response.headers['set-cookie'])
      t.notMatch(response.body, ADMIN_PASSWORD)
    })
  }

  t.test('sign-in is limited per address with Retry-After', async (t) => {
    const headers = { 'x-forwarded-for': '192.0.2.7' }
    for (let attempt = 1; attempt <= 5; attempt++) {
      t.match(await new Operator(relay).signIn('a guess', { headers }), { status: 401 })
    }
    const { status, headers: responseHeaders } = await new Operator(relay).signIn(ADMIN_PASSWORD, { headers })
    t.equal(status, 429, 'the right password too')
    t.ok(Number(responseHeaders['retry-after']) > 600 && Number(responseHeaders['retry-after']) <= 900)
    const other = { headers: { 'x-forwarded-for': '192.0.2.8' } }
    t.equal((await new Operator(relay).signIn(ADMIN_PASSWORD, other)).status, 204, 'others may')
    relay.advance(15 * MINUTE_MS)
    t.equal(
      (await new Operator(relay).signIn(ADMIN_PASSWORD, { headers })).status,
      204,
      'the limit ends after 15 minutes'
    )
  })

  t.test('sign-in is limited per /64 network for IPv6', async (t) => {
    const attempt = async (address: string, password: string): Promise<number> =>
      (await new Operator(relay).signIn(password, { headers: { 'x-forwarded-for': address } })).status
    const NEIGHBOURS = ['2001:db8::1', '2001:db8::2', '2001:db8:0:0:a:b:c:d', '2001:DB8:0::ffff', '2001:db8::']
    for (const address of NEIGHBOURS) t.equal(await attempt(address, 'a guess'), 401, address)
    t.equal(await attempt('2001:0db8::6', ADMIN_PASSWORD), 429)
    t.equal(await attempt('2001:db8:0:1::6', ADMIN_PASSWORD), 204)
  })

  t.test('sign-in is limited overall, except for addresses of earlier sign-ins', async (t) => {
    relay.advance(15 * MINUTE_MS)
    const guess = (address: string) =>
      new Operator(relay).signIn('a guess', { headers: { 'x-forwarded-for': address } })
    const statuses: number[] = []
    for (let attempt = 0; attempt < 120; attempt++) statuses.push((await guess(`198.51.100.${attempt}`)).status)
    t.equal(statuses.filter((status) => status === 401).length, 100)
    t.equal(statuses.at(-1), 429)
    const known = { headers: { 'x-forwarded-for': '192.0.2.8' } }
    t.equal((await new Operator(relay).signIn(ADMIN_PASSWORD, known)).status, 204)
    const unknown = { headers: { 'x-forwarded-for': '203.0.113.1' } }
    t.equal((await new Operator(relay).signIn(ADMIN_PASSWORD, unknown)).status, 429)
    relay.advance(15 * MINUTE_MS)
  })
})

t.test('sessions', async (t) => {
  const relay = await startRelay(t, undefined, ON)

  t.test('every route requires a session', async (t) => {
    for (const [method, path] of API) {
      const response = await send(relay.url, `/admin/api/${path}`, {
        method,
        body: method === 'POST' ? '{}' : '',
        headers: { 'content-type': 'application/json' }
      })
      t.match({ status: response.status, code: problem(response.body) }, { status: 401, code: 'NOT_SIGNED_IN' }, path)
    }
  })

  t.test('a forged or changed cookie is rejected', async (t) => {
    const { cookie } = await operator(relay)
    const other = await startRelay(t, undefined, { ...ON, REALTIME_API_KEY: 'the key of another relay' })
    const foreign = await operator(other)
    const [name, value = ''] = cookie.split('=')
    const parts = value.split('.')
    const changed = (index: number, text: string): string =>
      `${name}=${parts.map((part, at) => (at === index ? text : part)).join('.')}`
    const INVALID_COOKIES = [
      ['no cookie', ''],
      ['an empty one', `${name}=`],
      ['no signature', changed(5, '')],
      ['another signature', changed(5, 'A'.repeat(43))],
      ['another session', changed(1, 'A'.repeat(22))],
      ['a later time', changed(4, (Date.now() + 1000).toString(36))],
      ['another version', changed(0, 'v2')],
      ['more', `${cookie}.x`],
      ['two that differ', `${cookie}; ${changed(1, 'A'.repeat(22))}`],
      ['one of another relay with the same password', foreign.cookie],
      ['a long one', `${name}=${'v1.'.repeat(1000)}`]
    ] as const
    for (const [title, invalid] of INVALID_COOKIES) {
      t.equal((await send(relay.url, '/admin/api/session', { headers: { cookie: invalid } })).status, 401, title)
    }
    t.equal((await send(relay.url, '/admin/api/session', { headers: { cookie } })).status, 200, 'the real one is good')
  })

  t.test('a session ends after 30 idle minutes despite the live stream and automatic refreshes', async (t) => {
    const idle = await operator(relay)
    const busy = await operator(relay)
    const live = await idle.live(t)
    const ended = live.next('end')
    for (let minutes = 0; minutes < 40; minutes += 10) {
      relay.advance(10 * MINUTE_MS)
      await idle.get('channels', { headers: { 'x-admin-refresh': '1' } })
      t.equal((await busy.get('channels')).status, 200)
    }
    t.equal((await idle.get('session')).status, 401)
    await ended
    await live.closed
    for (let hours = 0; hours < 12; hours += 0.4) {
      relay.advance(0.4 * 60 * MINUTE_MS)
      await busy.get('session')
    }
    t.equal((await busy.get('session')).status, 401, 'a session ends after half a day at the latest')
  })

  t.test('sign-out invalidates copies of the cookie', async (t) => {
    const one = await operator(relay)
    const copy = new Operator(relay)
    copy.cookie = one.cookie
    const live = await copy.live(t)
    const ended = live.next('end')
    const { status, headers } = await one.post('sign-out')
    t.equal(status, 204)
    t.match(headers['set-cookie'], /^relay_admin=; .*Max-Age=0$/)
    t.equal((await copy.get('session')).status, 401)
    await ended
  })

  t.test('a changed password ends the session', async (t) => {
    const one = await operator(relay)
    const live = await one.live(t)
    relay.running.configure(configOf(undefined, ON))
    await live.next('sample')
    t.equal((await one.get('session')).status, 200, 'a reload with the same password keeps the session')
    const ended = live.next('end')
    relay.running.configure(configOf(undefined, { ...ON, RELAY_ADMIN_PASSWORD: 'another password' }))
    t.equal((await one.get('session')).status, 401)
    await ended
    t.equal((await new Operator(relay).signIn('another password')).status, 204)
    relay.running.configure(configOf(undefined, ON))
  })
})

t.test('POST requests require the CSRF token of the session', async (t) => {
  const relay = await startRelay(t, undefined, ON)
  const one = await operator(relay)
  const another = await operator(relay)
  const TOKENS: readonly (readonly [string, Record<string, string | undefined>])[] = [
    ['none', { 'x-admin-csrf': undefined }],
    ['an empty one', { 'x-admin-csrf': '' }],
    ['one of another session', { 'x-admin-csrf': another.csrf }],
    ['the cookie', { 'x-admin-csrf': one.cookie }],
    ['the right one on a foreign page', { origin: 'https://evil.example' }],
    ['the right one from another subdomain', { 'sec-fetch-site': 'same-site' }],
    ['the right one from another site', { 'sec-fetch-site': 'cross-site', origin: relay.url }]
  ]
  for (const [name, headers] of TOKENS) {
    for (const path of ['publish', 'disconnect', 'sign-out']) {
      const sent: Record<string, string> = { 'content-type': 'application/json' }
      for (const [header, value] of Object.entries({ ...one.headers, ...headers }))
        if (value !== undefined) sent[header] = value
      const response = await send(relay.url, `/admin/api/${path}`, { method: 'POST', body: '{}', headers: sent })
      t.equal(response.status, 403, `${path} with ${name}`)
    }
  }
  t.equal((await one.post('sign-out', {}, { headers: { origin: relay.url } })).status, 204)
})

t.test('an unexpected error receives 500 and fails that request only', async (t) => {
  const relay = await startRelay(t, undefined, ON)
  const one = await operator(relay)
  relay.relay.cluster.apply = () => Promise.reject(new Error('broken'))
  const { status, body } = await one.post('disconnect', { user: 'ada', client: '' })
  t.match({ status, code: problem(body) }, { status: 500, code: 'INTERNAL' })
  t.notMatch(body, 'broken')
})

t.test("paths of the operators' page", async (t) => {
  const folder = t.testdir()
  await mkdir(join(folder, 'page/assets'), { recursive: true })
  await writeFile(join(folder, 'secret.txt'), 'nobody sees this')
  await writeFile(join(folder, 'page/index.html'), '<!doctype html><title>Relay</title>')
  await writeFile(join(folder, 'page/assets/index-AbCd1234.js'), `export default '${'x'.repeat(5000)}'`)
  const relay = await startRelay(t, undefined, ON, { adminPage: join(folder, 'page') })
  const one = await operator(relay)

  t.test('the built page is public and has a Content-Security-Policy', async (t) => {
    const { status, headers, body } = await send(relay.url, '/admin')
    t.match({ status, body }, { status: 200, body: /<title>Relay/ })
    t.match(headers, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin'
    })
    const policy = headers['content-security-policy'] ?? ''
    t.match(
      policy,
      /default-src 'none'.*script-src 'self';.*connect-src 'self'.*base-uri 'none'; frame-ancestors 'none'/
    )
    t.notMatch(policy, /unsafe|\*/)
    t.equal((await send(relay.url, '/admin', { method: 'HEAD' })).body, '')
  })

  t.test('/admin/ is the page too', async (t) => {
    const [plain, slash] = [await send(relay.url, '/admin'), await send(relay.url, '/admin/?from=bookmark')]
    t.equal(slash.status, 200)
    t.equal(slash.body, plain.body)
    t.same(slash.headers['content-security-policy'], plain.headers['content-security-policy'])
    t.equal((await send(relay.url, '/admin/', { method: 'POST', body: '{}' })).status, 405)
  })

  t.test('hashed assets are cacheable and compressed', async (t) => {
    const plain = await send(relay.url, '/admin/assets/index-AbCd1234.js')
    t.match(plain.headers, {
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
      'x-content-type-options': 'nosniff'
    })
    t.equal(plain.headers['content-encoding'], undefined)
    const small = await send(relay.url, '/admin/assets/index-AbCd1234.js', {
      headers: { 'accept-encoding': 'gzip, br' }
    })
    t.equal(small.headers['content-encoding'], 'gzip')
    t.ok(Number(small.headers['content-length']) < 500)
    const not = { headers: { 'accept-encoding': 'br, gzip;q=0' } }
    t.equal((await send(relay.url, '/admin/assets/index-AbCd1234.js', not)).headers['content-encoding'], undefined)
  })

  const NOTHING = [
    '/admin//',
    '/admin/index.html',
    '/Admin',
    '/ADMIN/api/session',
    '//admin',
    '/admin//api/session',
    '/admin/./api/session',
    '/admin/../admin/api/session',
    '/admin/api/../api/session',
    '/admin/api/session/',
    '/admin/api/session%00',
    '/admin/api/sess%69on',
    '/admin/%61pi/session',
    '/%61dmin',
    '/admin/api',
    '/admin/api/',
    '/admin/api/__proto__',
    '/admin/api/constructor',
    '/admin/constructor',
    '/admin/assets',
    '/admin/assets/',
    '/admin/assets/../index.html',
    '/admin/assets/../../secret.txt',
    '/admin/assets/..%2f..%2fsecret.txt',
    '/admin/assets/%2e%2e/%2e%2e/secret.txt',
    '/admin/assets/..\\..\\secret.txt',
    '/admin/assets//etc/passwd',
    '/admin/secret.txt',
    '/admin/sign-in',
    '/admin/api/sign-in/x',
    '/admin;x/api/session',
    '/admin/api/session;x',
    '/admin#/api/session'
  ]
  t.test('unknown paths receive 404', async (t) => {
    for (const path of NOTHING) {
      const { status, body } = await sendRaw(
        relay.url,
        `GET ${path} HTTP/1.1\r\nHost: x\r\nCookie: ${one.cookie}\r\nConnection: close\r\n\r\n`
      )
      t.equal(status, 404, path)
      t.notMatch(body, /nobody sees|title/, path)
    }
  })

  t.test('other methods receive 405 with Allow', async (t) => {
    for (const [method, path] of [...API, ['POST', 'sign-in'] as const]) {
      for (const other of ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'].filter((each) => each !== method)) {
        const response = await send(relay.url, `/admin/api/${path}`, { method: other, headers: one.headers })
        t.match(
          { status: response.status, allow: response.headers.allow },
          { status: 405, allow: method },
          `${other} ${path}`
        )
      }
    }
    t.equal((await send(relay.url, '/admin', { method: 'POST' })).status, 405)
  })

  t.test('an unreadable page folder receives 500 until it becomes readable', async (t) => {
    const path = join(folder, 'later')
    await writeFile(path, 'no folder')
    const late = await startRelay(t, undefined, ON, { adminPage: path })
    t.match(await send(late.url, '/admin'), { status: 500, body: /INTERNAL/ })
    await rm(path)
    await mkdir(path)
    await writeFile(join(path, 'index.html'), '<!doctype html>')
    t.equal((await send(late.url, '/admin')).status, 200)
  })

  t.test('a page that was not built receives 503', async (t) => {
    const bare = await startRelay(t, undefined, ON, { adminPage: join(folder, 'nothing') })
    t.match(await send(bare.url, '/admin'), { status: 503, body: /was not built/ })
    t.equal((await send(bare.url, '/admin/assets/x.js')).status, 404)
    t.equal((await new Operator(bare).signIn()).status, 204, 'the API is there')
  })
})
