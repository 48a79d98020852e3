import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { tokenOf } from '../../helper/gateway.js'
import { startSharedCache } from '../../helper/shared-cache.js'
import {
  APP,
  APP_HOST,
  backendWith,
  exchangesIn,
  isExchange,
  signIn,
  startOidcGateway,
  startProvider,
  TestClock
} from './fixture.js'
import { TestBrowser } from './test-browser.js'

const SESSION = 'oidc_session'
const MINUTE = 60

const folder = await mkdtemp(join(tmpdir(), 'gatehouse-shared-cache-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))
await mkdir(join(folder, 'assets'))
await writeFile(join(folder, 'index.html'), '<!doctype html>')
await writeFile(join(folder, 'assets/index-DiwrgTda.js'), 'script')
await writeFile(join(folder, 'robots.txt'), 'robots')

const FILES = ['/assets/index-DiwrgTda.js', '/robots.txt', '/index.html']
const NAVIGATION = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }

/** Caching headers of a backend that a shared cache may act upon. */
const CACHEABLE: readonly Readonly<Record<string, string>>[] = [
  { 'cache-control': 'public, max-age=60' },
  { 'cache-control': 'max-age=60', vary: 'Authorization' },
  { 'cache-control': 'max-age=60, must-revalidate' },
  { 'cache-control': 'max-age=60, immutable' },
  { 'cache-control': 's-maxage=60' },
  { 'cache-control': 'private="x-name", max-age=60' },
  { 'cache-control': 'x=", no-store, ", public, max-age=60' },
  { 'cache-control': 'no-cache', etag: '"1"' },
  { 'cache-control': 'no-store', 'cdn-cache-control': 'max-age=60' },
  { 'cache-control': 'private', 'surrogate-control': 'max-age=60' },
  { 'surrogate-control': 'max-age=60' },
  { expires: 'Fri, 31 Dec 2100 00:00:00 GMT' },
  { 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' },
  { connection: 'cache-control', 'cache-control': 'max-age=60' },
  {}
]

t.test('shared cache in front of the gateway', async (t) => {
  const provider = await startProvider(t)

  const start = async (t: Test) => {
    const clock = new TestClock()
    const gateway = await startOidcGateway(t, { issuer: provider.url, clock, env: { WEB_ROOT: folder } })
    const cache = await startSharedCache(t, gateway.url)
    const victim = new TestBrowser([[APP_HOST, gateway.url]])
    await signIn(victim, 'ada')
    clock.advance(11)
    victim.move(APP_HOST, cache.url)
    const stranger = new TestBrowser([[APP_HOST, cache.url]])
    const dropAppSession = (): void => {
      for (const name of victim.names(APP_HOST)) if (name.startsWith('auth_')) victim.setCookie(APP_HOST, name, null)
    }
    /** Responds with the user's name and these headers. */
    const respondWith = (headers: Readonly<Record<string, string>>): void => {
      const logIn = backendWith(['ada@example.com'])
      gateway.backend.respond = (request, response) => {
        if (isExchange(request)) return logIn(request, response)
        response.writeHead(200, headers).end(request.headers.authorization === undefined ? 'anonymous' : 'for ada')
      }
    }
    return { clock, gateway, cache, victim, stranger, dropAppSession, respondWith }
  }

  t.test('a static file neither exchanges, renews nor clears sessions, and is cached', async (t) => {
    const { clock, gateway, cache, victim, stranger, dropAppSession } = await start(t)
    const sealed = victim.cookie(APP_HOST, SESSION) ?? ''
    gateway.backend.requests.length = 0
    const cookies: readonly (() => void)[] = [
      () => clock.advance(10 * MINUTE),
      dropAppSession,
      () => victim.setCookie(APP_HOST, SESSION, 'garbage')
    ]
    for (const prepare of cookies) {
      prepare()
      for (const file of FILES) {
        const response = await victim.request(`${APP}${file}`)
        t.equal(response.status, 200, file)
        t.equal(response.headers['set-cookie'], undefined, file)
      }
      // A cache may add the headers of HEAD to the response that it has stored for GET.
      const head = await victim.request(`${APP}/`, { method: 'HEAD', headers: NAVIGATION })
      t.equal(head.headers['set-cookie'], undefined)
    }
    t.same(exchangesIn(gateway.backend), [])
    victim.setCookie(APP_HOST, SESSION, sealed)
    t.equal(cache.stored.filter((url) => url === FILES[0]).length, 1)
    const response = await stranger.request(`${APP}${FILES[0]}`)
    t.equal(response.headers['cache-control'], 'public, max-age=31536000, immutable')
    t.equal(response.headers.age, '1', 'from the cache')
  })

  t.test('a page that a browser opens makes the exchange, and its response is not cached', async (t) => {
    const { cache, victim, dropAppSession } = await start(t)
    dropAppSession()
    for (const path of ['/', '/floors']) {
      dropAppSession()
      const response = await victim.request(`${APP}${path}`, { headers: NAVIGATION })
      t.equal(response.headers['cache-control'], 'no-store')
      t.ok(victim.cookie(APP_HOST, 'auth_token'))
    }
    t.same(cache.stored, [])
  })

  t.test('a response with a cookie is complete, so that no cache adds the cookie to a stored response', async (t) => {
    const { clock, gateway, cache, victim, stranger, dropAppSession, respondWith } = await start(t)
    respondWith({ 'cache-control': 'no-cache', etag: '"1"' })
    const { respond } = gateway.backend
    gateway.backend.respond = (request, response) => {
      if (request.headers['if-none-match'] === undefined) respond(request, response)
      else response.writeHead(304, { 'cache-control': 'no-cache', etag: '"1"' }).end()
    }
    const prepared = [dropAppSession, () => clock.advance(6 * MINUTE)]
    for (const path of ['/', '/api/things']) {
      await stranger.request(`${APP}${path}`, { headers: NAVIGATION })
      for (const prepare of prepared) {
        prepare()
        const own = await victim.request(`${APP}${path}`, { headers: NAVIGATION })
        t.equal(own.status, 200)
        t.ok(own.headers['set-cookie'], 'the user receives the cookies')
        const response = await stranger.request(`${APP}${path}`, { headers: NAVIGATION })
        t.equal(response.headers.age, '1', 'from the cache')
        t.equal(response.headers['set-cookie'], undefined)
      }
    }
    t.same(cache.stored, ['/', '/api/things'])
  })

  t.test('a stranger never receives cookies or responses of a user', async (t) => {
    const { clock, cache, victim, stranger, dropAppSession, respondWith } = await start(t)
    const sealed = victim.cookie(APP_HOST, SESSION) ?? ''
    const token = tokenOf('operator')
    let count = 0
    const unique = (): string => `${APP}/api/things?n=${count++}`
    const ways: readonly (readonly [
      string,
      () => Promise<{ url: string; body: string; control: string | undefined }>
    ])[] = [
      [
        'the exchange',
        async () => {
          dropAppSession()
          return read(victim, unique())
        }
      ],
      ['an app session', () => read(victim, unique())],
      [
        'a renewed provider session',
        async () => {
          clock.advance(6 * MINUTE)
          return read(victim, unique())
        }
      ],
      [
        'an invalid provider session',
        async () => {
          victim.setCookie(APP_HOST, SESSION, 'garbage')
          const result = await read(victim, unique())
          victim.setCookie(APP_HOST, SESSION, sealed)
          return result
        }
      ],
      ['a Bearer header', () => read(stranger, unique(), { authorization: `Bearer ${token}` })]
    ]
    for (const headers of CACHEABLE) {
      respondWith(headers)
      for (const [title, way] of ways) {
        const { url, control } = await way()
        const name = `${title}: ${JSON.stringify(headers)}`
        t.match(control, /^(?:no-store$|private)/, name)
        const response = await stranger.request(url)
        t.equal(response.headers['set-cookie'], undefined, name)
        t.equal(response.body, 'anonymous', name)
      }
    }
    t.ok(cache.stored.length > 0, 'anonymous responses are cached')
  })
})

const read = async (browser: TestBrowser, url: string, headers: Readonly<Record<string, string>> = {}) => {
  const response = await browser.request(url, { headers })
  return { url, body: response.body, control: response.headers['cache-control'] }
}
