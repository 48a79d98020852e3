import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { Teardown } from '../../helper/child.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import type { HttpResponse, Message } from '../../helper/http.js'

const IMMUTABLE = 'public, max-age=31536000, immutable'
const SECRET = 's3cr3t'

/** A built app. The compressed files have different content, so that tests can identify the served file. */
const APP: Readonly<Record<string, string>> = {
  'index.html': '<!doctype html><title>app</title>',
  'index.html.br': 'br of index',
  'index.html.gz': 'gz of the index',
  'assets/index-DiwrgTda.js': 'console.log("a script")',
  'assets/index-DiwrgTda.js.br': 'br of script',
  'assets/index-DiwrgTda.js.gz': 'gz of script',
  'assets/chart-B7c_k2-9.js': 'console.log("a chart")',
  'assets/chart-B7c_k2-9.js.gz': 'gz of chart',
  'robots.txt': '0123456789',
  LICENSE: 'MIT',
  '.env': `API_SECRET=${SECRET}`,
  '.git/config': SECRET,
  '.well-known/security.txt': SECRET,
  'assets/.cache/x.js': SECRET,
  'api/zones': SECRET,
  'api/index.html': SECRET,
  metrics: SECRET,
  'auth/oidc/login': SECRET,
  'dev-login': SECRET,
  'dev-user': SECRET,
  'ble/scan': SECRET,
  'ble/status': SECRET
}

const writeApp = async (folder: string, files: Readonly<Record<string, string>>): Promise<void> => {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
}

interface Pages extends TestGateway {
  readonly folder: string
}

/** An app in a subfolder; nothing outside of it may be served. */
const makeFolder = async (t: Teardown, files: Readonly<Record<string, string>>): Promise<string> => {
  const outside = await mkdtemp(join(tmpdir(), 'gatehouse-web-root-'))
  t.teardown(() => rm(outside, { recursive: true, force: true }))
  await writeApp(outside, { 'secret.txt': SECRET, 'app/.keep': '' })
  await writeApp(join(outside, 'app'), files)
  return join(outside, 'app')
}

const startPages = async (t: Teardown, files: Readonly<Record<string, string>> = APP): Promise<Pages> =>
  serve(t, await makeFolder(t, files))

const serve = async (t: Teardown, folder: string): Promise<Pages> => {
  const extend = (app: TestGateway['gateway']['app']): void => {
    app.get('/auth/oidc/callback', async () => 'signed in')
  }
  return { ...(await startGateway(t, { env: { WEB_ROOT: folder }, extend })), folder }
}

const isErrorResponse = (t: Test, response: HttpResponse, code = 'NOT_FOUND'): void => {
  t.equal(response.code, code)
  t.equal(response.headers['cache-control'], 'no-store')
  t.notMatch(response.body, SECRET)
}

const isIndex = (t: Test, response: HttpResponse): void => {
  t.equal(response.status, 200)
  t.equal(response.body, APP['index.html'])
  t.equal(response.headers['content-type'], 'text/html; charset=utf-8')
  t.equal(response.headers['cache-control'], 'no-cache')
}

const TYPES: readonly (readonly [file: string, type: string])[] = [
  ['page.html', 'text/html; charset=utf-8'],
  ['style.css', 'text/css; charset=utf-8'],
  ['app.js', 'application/javascript; charset=utf-8'],
  ['worker.mjs', 'application/javascript; charset=utf-8'],
  ['app.js.map', 'application/json; charset=utf-8'],
  ['data.json', 'application/json; charset=utf-8'],
  ['robots.txt', 'text/plain; charset=utf-8'],
  ['core.wasm', 'application/wasm'],
  ['app.webmanifest', 'application/manifest+json'],
  ['plan.svg', 'image/svg+xml'],
  ['photo.png', 'image/png'],
  ['photo.webp', 'image/webp'],
  ['photo.avif', 'image/avif'],
  ['favicon.ico', 'image/vnd.microsoft.icon'],
  ['font.woff2', 'font/woff2'],
  ['LICENSE', 'application/octet-stream'],
  ['what.ever', 'application/octet-stream']
]

const CACHING: readonly (readonly [file: string, cacheControl: string])[] = [
  ['index.html', 'no-cache'],
  ['favicon.ico', 'no-cache'],
  ['sw.js', 'no-cache'],
  ['manifest-DiwrgTda.json', 'no-cache'],
  ['static/index-DiwrgTda.js', 'no-cache'],
  ['assets/index.js', 'no-cache'],
  ['assets/DiwrgTda.js', 'no-cache'],
  ['assets/index-Diwrg.js', 'no-cache'],
  ['assets/index-DiwrgTda', 'no-cache'],
  ['assets/logo-vertical.svg', 'no-cache'],
  ['assets/logo-Vertical.svg', 'no-cache'],
  ['assets/logo-VERTICAL.svg', 'no-cache'],
  ['assets/user-settings.json', 'no-cache'],
  ['assets/photo-20240131.png', 'no-cache'],
  ['assets/hall-1280x720.png', 'no-cache'],
  ['assets/index-DiwrgTda.js', IMMUTABLE],
  ['assets/index-DiwrgTda.js.map', IMMUTABLE],
  ['assets/index-legacy-BX_2k-d1.js', IMMUTABLE],
  ['assets/index-1a2b3c4d.css', IMMUTABLE],
  ['assets/fonts/inter-C38fXH4l.woff2', IMMUTABLE],
  ['assets/plan.v2-C38fXH4l.svg', IMMUTABLE]
]

const NAMES: readonly (readonly [file: string, path: string])[] = [
  ['a b.txt', '/a%20b.txt'],
  ['straße/plan é.txt', '/stra%C3%9Fe/plan%20%C3%A9.txt'],
  ["a'b(c)!.txt", "/a'b(c)!.txt"],
  ['a&b=c+d,e@f:g.txt', '/a&b=c+d,e@f:g.txt'],
  ['🙂.txt', '/%F0%9F%99%82.txt']
]

t.test('a file', async (t) => {
  const names = [...TYPES, ...CACHING, ...NAMES].map(([file]) => file)
  const { send } = await startPages(t, Object.fromEntries(['index.html', ...names].map((file) => [file, 'content'])))

  for (const [file, type] of TYPES) {
    t.test(`${file} has the content type ${type}`, async (t) => {
      const response = await send(`/${file}`)

      t.equal(response.status, 200)
      t.equal(response.body, 'content')
      t.equal(response.headers['content-type'], type)
      t.equal(response.headers['content-length'], '7')
    })
  }

  for (const [file, cacheControl] of CACHING) {
    t.test(`${file} has Cache-Control: ${cacheControl}`, async (t) => {
      const response = await send(`/${file}?v=1`)

      t.equal(response.status, 200)
      t.equal(response.headers['cache-control'], cacheControl)
    })
  }

  for (const [file, path] of NAMES) {
    t.test(`the file ${file} is served at ${path}`, async (t) => {
      t.equal((await send(path)).body, 'content')
    })
  }

  t.test('the response to HEAD has no body', async (t) => {
    const response = await send('/robots.txt', { method: 'HEAD' })

    t.equal(response.status, 200)
    t.equal(response.body, '')
    t.equal(response.headers['content-length'], '7')
    t.equal(response.headers['content-type'], 'text/plain; charset=utf-8')
  })

  t.test('a large file arrives complete', async (t) => {
    const content = 'abcdefgh'.repeat(500_000)
    const { send } = await startPages(t, { 'index.html': '', 'large.txt': content })

    t.equal((await send('/large.txt')).body === content, true)
  })

  t.test('an empty file is served', async (t) => {
    const { send } = await startPages(t, { 'index.html': '', 'empty.txt': '' })

    const response = await send('/empty.txt')

    t.equal(response.status, 200)
    t.equal(response.headers['content-length'], '0')
  })
})

const ENCODINGS: readonly (readonly [
  path: string,
  accepted: string | undefined,
  encoding: string | undefined,
  body: string
])[] = [
  ['/assets/index-DiwrgTda.js', 'gzip, deflate, br, zstd', 'br', 'br of script'],
  ['/assets/index-DiwrgTda.js', 'br', 'br', 'br of script'],
  ['/assets/index-DiwrgTda.js', 'BR', 'br', 'br of script'],
  ['/assets/index-DiwrgTda.js', 'gzip', 'gzip', 'gz of script'],
  ['/assets/index-DiwrgTda.js', 'br;q=0.1, gzip;q=0.9', 'gzip', 'gz of script'],
  ['/assets/index-DiwrgTda.js', 'br;q=0, gzip', 'gzip', 'gz of script'],
  ['/assets/index-DiwrgTda.js', 'br;q=0', undefined, 'console.log("a script")'],
  ['/assets/index-DiwrgTda.js', 'deflate', undefined, 'console.log("a script")'],
  ['/assets/index-DiwrgTda.js', 'identity', undefined, 'console.log("a script")'],
  ['/assets/index-DiwrgTda.js', 'zstd', undefined, 'console.log("a script")'],
  ['/assets/index-DiwrgTda.js', '', undefined, 'console.log("a script")'],
  ['/assets/index-DiwrgTda.js', undefined, undefined, 'console.log("a script")'],
  ['/assets/chart-B7c_k2-9.js', 'gzip, deflate, br', 'gzip', 'gz of chart'],
  ['/robots.txt', 'gzip, deflate, br', undefined, '0123456789'],
  ['/', 'br', 'br', 'br of index'],
  ['/zones/7', 'gzip', 'gzip', 'gz of the index']
]

t.test('the encoding', async (t) => {
  const { send } = await startPages(t)

  for (const [path, accepted, encoding, body] of ENCODINGS) {
    t.test(
      `the encoding of ${path} is ${encoding ?? 'none'} with Accept-Encoding: ${accepted ?? '(none)'}`,
      async (t) => {
        const response = await send(path, { headers: accepted === undefined ? {} : { 'accept-encoding': accepted } })

        t.equal(response.status, 200)
        t.equal(response.headers['content-encoding'], encoding)
        t.equal(response.body, body)
        t.equal(response.headers['content-length'], String(body.length))
        t.equal(response.headers.vary, 'accept-encoding')
        t.match(response.headers['content-type'], /^(?:text\/html|text\/plain|application\/javascript); charset=utf-8$/)
        t.equal(response.headers['cache-control'], path.startsWith('/assets/') ? IMMUTABLE : 'no-cache')
      }
    )
  }

  t.test('each encoding has its own entity tag', async (t) => {
    const tags = new Set<string | undefined>()

    for (const accepted of ['br', 'gzip', 'identity']) {
      tags.add((await send('/', { headers: { 'accept-encoding': accepted } })).headers.etag)
    }

    t.equal(tags.size, 3)
    t.notOk(tags.has(undefined))
  })
})

const PAGES = [
  '/',
  '/?a=b',
  '/zones',
  '/zones/7',
  '/zones/7?tab=map.png',
  '/zones/',
  '/floors/v1.2/plan',
  '/assets',
  '/assets/',
  '/apis/zones',
  '/api-keys',
  '/auth/login',
  '/auth',
  '/auth/oidcs',
  '/metrics-of-mine',
  '/a%20page',
  '/stra%C3%9Fe',
  `/${'a'.repeat(300)}`,
  `/${'a/'.repeat(2500)}`,
  '/LICENSE/page',
  '/ble',
  '/ble/settings',
  '/dev-users'
]

const ACCEPTED: readonly (readonly [accept: string | undefined, html: boolean])[] = [
  ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', true],
  ['text/html', true],
  ['TEXT/HTML', true],
  ['text/*', true],
  ['*/*', true],
  ['application/json, */*;q=0.1', true],
  [' text/html ; q=0.5', true],
  [undefined, true],
  ['application/json', false],
  ['application/json, text/plain', false],
  ['text/event-stream', false],
  ['image/*', false],
  ['text/html;q=0', false],
  ['text/html; q=0.000, application/json', false],
  ['text/htmlx', false],
  ['', false]
]

const NAVIGATIONS: readonly (readonly [title: string, headers: Record<string, string>])[] = [
  ['a browser', { 'sec-fetch-mode': 'navigate', accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }],
  ['a browser that accepts any type', { 'sec-fetch-mode': 'navigate', accept: '*/*' }],
  ['an older browser', { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }]
]

t.test('the index', async (t) => {
  const { send, backend } = await startPages(t)

  for (const path of PAGES) {
    t.test(
      `the index is served at ${path.length > 60 ? `${path.slice(0, 20)}… of ${path.length} characters` : path}`,
      async (t) => {
        isIndex(t, await send(path))
        t.same(backend.requests, [])
      }
    )
  }

  t.test('the index is served for HEAD', async (t) => {
    const response = await send('/zones/7', { method: 'HEAD' })

    t.equal(response.status, 200)
    t.equal(response.body, '')
    t.equal(response.headers['content-length'], String(APP['index.html']?.length))
  })

  for (const [accept, html] of ACCEPTED) {
    t.test(`the index is ${html ? '' : 'not '}served with Accept: ${accept ?? '(none)'}`, async (t) => {
      const response = await send('/zones/7', { headers: accept === undefined ? {} : { accept } })

      if (html) isIndex(t, response)
      else isErrorResponse(t, response)
    })
  }

  for (const path of ['/zones/7.5', '/users/ada@example.com', '/floors/plan.png', '/gone.js', '/robots.txt/']) {
    for (const [title, headers] of NAVIGATIONS) {
      t.test(`the index is served for a navigation to ${path}: ${title}`, async (t) => {
        isIndex(t, await send(path, { headers }))
      })
    }
  }

  t.test('/index.html is served with any Accept header', async (t) => {
    isIndex(t, await send('/index.html', { headers: { accept: 'application/json' } }))
    isIndex(t, await send('/', { headers: { accept: 'application/json' } }))
  })
})

const MISSING_FILES: readonly (readonly [path: string, title: string])[] = [
  ['/gone.js', 'a script that is gone'],
  ['/assets/index-GoneGone.js', 'a script of an older build'],
  ['/zones/plan.png', 'a picture that is gone'],
  ['/favicon.ico', 'a picture that was never there'],
  ['/zones/7.json', 'an extension'],
  ['/robots.txt/', 'a file is no folder'],
  ['/robots.txt/x.txt', 'a file is no folder']
]

const FILE_REQUESTS: readonly (readonly [kind: string, headers: Record<string, string>])[] = [
  ['whatever it is', {}],
  ['a script', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script', accept: '*/*' }],
  ['a module', { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'script', accept: '*/*' }],
  ['a style', { accept: 'text/css,*/*;q=0.1' }],
  ['a picture', { accept: 'image/avif,image/webp,image/*,*/*;q=0.8' }],
  ['no page', { accept: 'text/html;q=0,*/*' }]
]

const MISSING: readonly (readonly [path: string, title: string])[] = [
  ['/.env', 'hidden'],
  ['/.git/config', 'hidden'],
  ['/.git', 'hidden'],
  ['/.git/', 'hidden'],
  ['/.gone', 'hidden, if it were there'],
  ['/.well-known/security.txt', 'hidden'],
  ['/assets/.cache/x.js', 'in a hidden folder'],
  ['/...', 'hidden, if it were there'],
  ['/api', 'of the API'],
  ['/API', 'of the API'],
  ['/Api/unknown', 'of the API'],
  ['/metrics/', 'of the gateway'],
  ['/auth/oidc', 'of the gateway'],
  ['/auth/oidc/login', 'of the gateway'],
  ['/auth/oidc/anything', 'of the gateway'],
  ['/dev-login', 'of the gateway, in development'],
  ['/dev-user', 'of the gateway, in development'],
  ['/ble/scan', 'of the gateway, in development'],
  ['/ble/status', 'of the gateway, in development'],
  ['/BLE/status/', 'of the gateway, in development']
]

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']

t.test('not found', async (t) => {
  const { send } = await startPages(t)

  for (const [path, title] of MISSING_FILES) {
    for (const [kind, headers] of FILE_REQUESTS) {
      t.test(`${path} requested as ${kind} is 404: ${title}`, async (t) => {
        const response = await send(path, { headers })

        t.equal(response.status, 404)
        isErrorResponse(t, response)
      })
    }
  }

  for (const [path, title] of MISSING) {
    t.test(`${path} is 404: ${title}`, async (t) => {
      const response = await send(path, { headers: { accept: 'text/html', 'accept-encoding': 'br, gzip' } })

      t.equal(response.status, 404)
      isErrorResponse(t, response)
    })
  }

  for (const method of METHODS) {
    for (const path of ['/', '/index.html', '/zones/7', '/assets/index-DiwrgTda.js']) {
      t.test(`${method} ${path} is 404`, async (t) => {
        const response = await send(path, { method })

        t.equal(response.status, 404)
        isErrorResponse(t, response)
      })
    }
  }
})

t.test('a route of the gateway', async (t) => {
  const { send, backend } = await startPages(t)

  for (const path of ['/api/zones', '/api/index.html', '/api/', '/api/unknown.js']) {
    t.test(`a route of the gateway has precedence over files: ${path}`, async (t) => {
      const response = await send(path)

      t.equal(response.body, '{"success":true}')
      t.equal(backend.requests.at(-1)?.url, path)
    })
  }

  t.test('/auth/oidc/callback has precedence over the index', async (t) => {
    t.equal((await send('/auth/oidc/callback?code=x')).body, 'signed in')
  })

  t.test('/metrics has precedence over files', async (t) => {
    t.match((await send('/metrics')).body, '\ngateway_in_flight 0\n')
    isErrorResponse(t, await send('/metrics', { headers: { 'x-forwarded-for': '203.0.113.9' } }))
  })

  t.test('/api/health has precedence over the index', async (t) => {
    t.match((await send('/api/health')).body, '"status":"ok"')
  })
})

// Each names an existing file after another round of decoding, case folding or normalisation.
const TRICKS = [
  '/../secret.txt',
  '/assets/../../secret.txt',
  '/assets/../index.html',
  '/./index.html',
  '/%2e%2e/secret.txt',
  '/%2E%2E/secret.txt',
  '/.%2e/secret.txt',
  '/..%2fsecret.txt',
  '/..%5csecret.txt',
  '/..\\secret.txt',
  '/assets\\..\\..\\secret.txt',
  '/%252e%252e/secret.txt',
  '/..%252fsecret.txt',
  '/..;/secret.txt',
  '//secret.txt',
  '//etc/passwd',
  '/%2fetc/passwd',
  '/assets//index-DiwrgTda.js',
  '/%2eenv',
  '/%2Egit/config',
  '/index.html%00',
  '/index.html%00.js',
  '/..%00/secret.txt',
  '/%c0%ae%c0%ae/secret.txt',
  '/%ef%bc%8e%ef%bc%8e/secret.txt',
  '/%ef%bc%8eenv',
  '/%e2%80%a4env',
  '/robots%2etxt',
  '/%72obots.txt',
  '/%61pi/zones',
  '/file:///etc/passwd'
]

t.test('an ambiguous path', async (t) => {
  const { send, backend } = await startPages(t)

  for (const path of TRICKS) {
    t.test(`an ambiguous path is rejected: ${path}`, async (t) => {
      const response = await send(path, { headers: { accept: 'text/html' } })

      t.equal(response.status, 400)
      isErrorResponse(t, response, 'AMBIGUOUS_PATH')
      t.same(backend.requests, [])
    })
  }
})

/** Far in the past, independent of the clock. */
const THEN = new Date('2024-02-03T04:05:06Z')

const startWithOldFile = async (t: Teardown): Promise<Pages> => {
  const pages = await startPages(t)
  await utimes(join(pages.folder, 'robots.txt'), THEN, THEN)
  return pages
}

const ETAG = `W/"a-${THEN.getTime().toString(16)}"`

interface Condition {
  readonly headers: NonNullable<Message['headers']>
  readonly status: number
  readonly body: string
  readonly contentRange?: string
}

const CONDITIONS: readonly Condition[] = [
  { headers: { 'if-none-match': ETAG }, status: 304, body: '' },
  { headers: { 'if-none-match': `"x", ${ETAG}` }, status: 304, body: '' },
  { headers: { 'if-none-match': '*' }, status: 304, body: '' },
  { headers: { 'if-none-match': '"x"' }, status: 200, body: '0123456789' },
  { headers: { 'if-modified-since': THEN.toUTCString() }, status: 304, body: '' },
  { headers: { 'if-modified-since': 'Fri, 02 Feb 2024 04:05:06 GMT' }, status: 200, body: '0123456789' },
  {
    headers: { 'if-none-match': '"x"', 'if-modified-since': THEN.toUTCString() },
    status: 200,
    body: '0123456789'
  },
  { headers: { 'if-match': '"x"' }, status: 412, body: '' },
  { headers: { 'if-unmodified-since': 'Fri, 02 Feb 2024 04:05:06 GMT' }, status: 412, body: '' },
  { headers: { range: 'bytes=0-3' }, status: 206, body: '0123', contentRange: 'bytes 0-3/10' },
  { headers: { range: 'bytes=4-' }, status: 206, body: '456789', contentRange: 'bytes 4-9/10' },
  { headers: { range: 'bytes=-2' }, status: 206, body: '89', contentRange: 'bytes 8-9/10' },
  { headers: { range: 'bytes=8-99' }, status: 206, body: '89', contentRange: 'bytes 8-9/10' },
  { headers: { range: 'bytes=10-' }, status: 416, body: '', contentRange: 'bytes */10' },
  { headers: { range: 'bytes=0-1,4-5' }, status: 200, body: '0123456789' },
  { headers: { range: 'lines=0-1' }, status: 200, body: '0123456789' },
  { headers: { range: 'bytes=0-3', 'if-range': ETAG }, status: 206, body: '0123', contentRange: 'bytes 0-3/10' },
  { headers: { range: 'bytes=0-3', 'if-range': '"x"' }, status: 200, body: '0123456789' }
]

t.test('a request with conditions', async (t) => {
  const { send, logs } = await startWithOldFile(t)

  for (const { headers, status, body, contentRange } of CONDITIONS) {
    t.test(`a conditional request gets ${status} for ${JSON.stringify(headers)}`, async (t) => {
      const response = await send('/robots.txt', { headers })

      t.equal(response.status, status)
      t.equal(response.body, body)
      t.equal(response.headers['content-range'], contentRange)
      const isError = status >= 400
      t.equal(response.headers['cache-control'], isError ? 'no-store' : 'no-cache')
      t.equal(response.headers.etag, isError ? undefined : ETAG)
      t.equal(response.headers['last-modified'], isError ? undefined : THEN.toUTCString())
      t.same(
        logs.filter(({ level }) => Number(level) > 30),
        [],
        'no warning is logged'
      )
    })
  }

  t.test('the index at a page path is 304 if unchanged', async (t) => {
    const { etag } = (await send('/zones/7')).headers

    const response = await send('/floors/2', { headers: { 'if-none-match': etag } })

    t.equal(response.status, 304)
    t.equal(response.headers.etag, etag)
  })

  t.test('a range request gets a part of the compressed file', async (t) => {
    const response = await send('/', { headers: { range: 'bytes=0-1', 'accept-encoding': 'br' } })

    t.equal(response.status, 206)
    t.equal(response.body, 'br')
    t.equal(response.headers['content-encoding'], 'br')
  })
})

const SECURITY_HEADERS = {
  'content-security-policy': /^default-src 'self';/,
  'strict-transport-security': /^max-age=31536000/,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': /^geolocation/,
  'x-request-id': String
}

const RESPONSES: readonly (readonly [
  kind: string,
  path: string,
  headers: NonNullable<Message['headers']>,
  status: number
])[] = [
  ['a file', '/robots.txt', {}, 200],
  ['a compressed file', '/assets/index-DiwrgTda.js', { 'accept-encoding': 'br' }, 200],
  ['the index', '/zones/7', {}, 200],
  ['a file that has not changed', '/robots.txt', { 'if-none-match': '*' }, 304],
  ['a part of a file', '/robots.txt', { range: 'bytes=0-1' }, 206],
  ['a part that there is not', '/robots.txt', { range: 'bytes=99-' }, 416],
  ['a condition that is not met', '/robots.txt', { 'if-match': '"x"' }, 412],
  ['a file that there is not', '/gone.js', {}, 404],
  ['a hidden file', '/.env', {}, 404]
]

t.test('security headers', async (t) => {
  const { send } = await startPages(t)

  for (const [kind, path, headers, status] of RESPONSES) {
    t.test(`the response with ${kind} has the security headers`, async (t) => {
      const response = await send(path, { headers })

      t.equal(response.status, status)
      t.match(response.headers, SECURITY_HEADERS)
    })
  }
})

t.test('a deploy', async (t) => {
  t.test('files replaced by a deploy are served at once', async (t) => {
    const { send, folder } = await startPages(t, { 'index.html': 'old', 'assets/index-OldOld01.js': 'old' })
    const { etag } = (await send('/')).headers

    await rm(join(folder, 'assets/index-OldOld01.js'))
    await writeApp(folder, { 'index.html': 'newer', 'assets/index-NewNew02.js': 'new', 'added.txt': 'added' })

    const index = await send('/zones', { headers: { 'if-none-match': etag } })
    t.equal(index.status, 200)
    t.equal(index.body, 'newer')
    t.equal((await send('/assets/index-NewNew02.js')).body, 'new')
    t.equal((await send('/added.txt')).body, 'added')
    isErrorResponse(t, await send('/assets/index-OldOld01.js'))
  })

  t.test('a symbolic link changed by a deploy takes effect at once', async (t) => {
    const parent = await makeFolder(t, {})
    await writeApp(parent, { '1/index.html': 'first', '1/old.txt': 'old', '2/index.html': 'second' })
    await symlink('1', join(parent, 'current'))
    const { send } = await serve(t, join(parent, 'current'))
    t.equal((await send('/')).body, 'first')

    await symlink('2', join(parent, 'next'))
    await rename(join(parent, 'next'), join(parent, 'current'))

    t.equal((await send('/')).body, 'second')
    isErrorResponse(t, await send('/old.txt'))
  })

  t.test('pages are 404 after the index is removed', async (t) => {
    const { send, folder } = await startPages(t)

    for (const name of ['index.html', 'index.html.br', 'index.html.gz']) await rm(join(folder, name))

    for (const path of ['/', '/zones/7']) {
      const response = await send(path, { headers: { 'accept-encoding': 'br, gzip' } })
      t.equal(response.status, 404)
      isErrorResponse(t, response)
    }
    t.equal((await send('/robots.txt')).status, 200)
  })

  t.test('pages are 404 after the folder is removed', async (t) => {
    const { send, folder } = await startPages(t)

    await rm(folder, { recursive: true })

    isErrorResponse(t, await send('/'))
    isErrorResponse(t, await send('/robots.txt'))
    t.equal((await send('/api/zones')).status, 200)
  })
})

t.test('a symbolic link', async (t) => {
  t.test('a symbolic link in the folder is followed to any target', async (t) => {
    const { send, folder } = await startPages(t)
    await writeFile(join(folder, '../shared.txt'), 'shared')
    await symlink('../shared.txt', join(folder, 'shared.txt'))

    t.equal((await send('/shared.txt')).body, 'shared')
  })

  t.test('a dangling or circular symbolic link is 404', async (t) => {
    const { send, folder } = await startPages(t)
    await symlink('gone', join(folder, 'broken.txt'))
    await symlink('circle.txt', join(folder, 'circle.txt'))

    isErrorResponse(t, await send('/broken.txt'))
    isErrorResponse(t, await send('/circle.txt'))
  })
})

t.test('special files are not served', async (t) => {
  const { send, folder } = await startPages(t)
  const server = createServer().listen(join(folder, 'socket.txt'))
  t.teardown(() => server.close())

  isErrorResponse(t, await send('/socket.txt'))
})

t.test('an unreadable file is an internal error without the headers of the file', async (t) => {
  const { send, folder, logs } = await startPages(t)
  // The file exists but cannot be opened.
  const server = createServer().listen(join(folder, 'robots.txt.br'))
  t.teardown(() => server.close())

  const response = await send('/robots.txt', { headers: { 'accept-encoding': 'br' } })

  t.equal(response.status, 500)
  isErrorResponse(t, response, 'INTERNAL')
  t.equal(response.headers['content-encoding'], undefined)
  t.equal(response.headers.etag, undefined)
  t.equal(response.headers['content-length'], String(response.body.length))
  t.match(
    logs.filter(({ level }) => Number(level) === 50),
    [{ code: 'INTERNAL' }]
  )
})

const NO_APPS: readonly (readonly [title: string, make: (folder: string) => Promise<unknown>])[] = [
  ['is not there', (folder) => rm(folder, { recursive: true })],
  ['has no index', (folder) => writeApp(folder, { 'app.js': '' })],
  ['has a folder in place of the index', (folder) => mkdir(join(folder, 'index.html'))],
  [
    'is a file',
    async (folder) => {
      await rm(folder, { recursive: true })
      await writeFile(folder, '')
    }
  ]
]

t.test('the start', async (t) => {
  for (const [title, make] of NO_APPS) {
    t.test(`the gateway does not start if the folder ${title}`, async (t) => {
      const folder = await makeFolder(t, {})
      await make(folder)

      await t.rejects(serve(t, folder), {
        message: `WEB_ROOT must be a folder with an index.html, not ${JSON.stringify(folder)}`
      })
    })
  }
})
