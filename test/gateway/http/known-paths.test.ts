import fc from 'fast-check'
import t from 'tap'
import { AccessRules } from '../../../src/gateway/access.js'
import { KnownPaths } from '../../../src/gateway/http/known-paths.js'
import { toCanonicalPath } from '../../../src/shared/request-path.js'
import { couldBeStrict } from '../../helper/path-decoders.js'
import { checkProperty } from '../../helper/property.js'

const PROTECTED = ['/api/admin', '/api/audit']

t.test('toCanonicalPath', async (t) => {
  const ACCEPTED: readonly (readonly [string, string])[] = [
    ['/', 'the root'],
    ['/api/zones', 'a plain path'],
    ['/api/zones/7', 'a number as id'],
    ['/api/zones/AA:BB:CC:00:11:22', 'a hardware address as id'],
    ['/api/zones/0f3c1d9e-7a44-4b8e-9a57-3f0f4c1f2a10', 'a UUID as id'],
    ['/api/zones/a.b', 'a dot inside a name'],
    ['/.well-known/security.txt', 'a name that begins with a dot'],
    ['/api/zones/...', 'three dots, which are a name'],
    ['/api/unknown/', 'a slash at the end'],
    ['/api/users/a%40b.c', 'an encoded at sign'],
    ['/api/users/first%20last', 'an encoded space'],
    ['/api/users/%C3%A9t%C3%A9', 'UTF-8'],
    ['/api/users/%c3%a9', 'UTF-8 in small hex'],
    ['/api/users/%F0%9F%9A%AA', 'UTF-8 beyond the first plane'],
    ['/api/zones/%3A%2C%24%26%2B%3D', 'what encodeURIComponent encodes'],
    ["/api/zones/(a)*!'$&,=", 'what encodeURIComponent leaves']
  ]
  for (const [path, title] of ACCEPTED) {
    t.test(`toCanonicalPath accepts ${title}: ${path}`, async (t) => {
      t.equal(toCanonicalPath(path), path)
      t.equal(toCanonicalPath(`${path}?q=/../%2f;//#\\`), path, 'the query is ignored')
    })
  }

  const REJECTED: readonly (readonly [string, string])[] = [
    ['', 'nothing'],
    ['*', 'the server as a whole'],
    ['api/zones', 'a path without its slash'],
    ['http://host/api/zones', 'a whole address'],
    ['//api/zones', 'a double slash in front'],
    ['/api//zones', 'a double slash inside'],
    ['/api/zones//', 'a double slash at the end'],
    ['/api/./zones', 'a dot segment'],
    ['/api/../zones', 'a double dot segment'],
    ['/api/zones/..', 'a double dot at the end'],
    ['/api/zones/.', 'a dot at the end'],
    ['/..', 'nothing but dots'],
    ['/api/%2e%2e/zones', 'encoded dots'],
    ['/api/%2E/zones', 'an encoded dot'],
    ['/api/a%2Eb', 'an encoded dot inside a name'],
    ['/api\\zones', 'a backslash'],
    ['/api/zones%5cx', 'an encoded backslash'],
    ['/api%2fzones', 'an encoded slash'],
    ['/api/zones%2F7', 'an encoded slash in capitals'],
    ['/api/zones;a=b', 'a path parameter'],
    ['/api/zones%3ba', 'an encoded semicolon'],
    ['/api/zones%3Fa', 'an encoded question mark'],
    ['/api/zones%23a', 'an encoded hash'],
    ['/api/zones#a', 'a fragment'],
    ['/api/%7aones', 'an encoded small letter'],
    ['/api/%5Aones', 'an encoded capital'],
    ['/api/zones/%37', 'an encoded digit'],
    ['/api/%61', 'an encoded a'],
    ['/api/%6F', 'an encoded o'],
    ['/api/%41', 'an encoded A'],
    ['/api/%4f', 'an encoded O'],
    ['/api/%50', 'an encoded P'],
    ['/api/%70', 'an encoded p'],
    ['/api/a%2Db', 'an encoded hyphen'],
    ['/api/a%5fb', 'an encoded underscore'],
    ['/api/a%7eb', 'an encoded tilde'],
    ['/api/%2561', 'encoding on encoding'],
    ['/api/zones%00', 'a NUL'],
    ['/api/zones%0a', 'a line break'],
    ['/api/zones%1f', 'a control character'],
    ['/api/zones%7f', 'a delete character'],
    ['/api/zones%C2%85', 'a control character beyond ASCII'],
    ['/api/zones%E2%80%A8', 'a line separator'],
    ['/api/zones%', 'a percent sign alone'],
    ['/api/zones%4', 'half an encoding'],
    ['/api/zones%zz', 'no encoding at all'],
    ['/api/%u0061dmin', 'an encoding of another age'],
    ['/api/%c1%a1dmin', 'an over-long encoding'],
    ['/api/%ff', 'a byte that is no UTF-8'],
    ['/api/%ed%a0%80', 'half of a pair'],
    ['/api/a%EF%BC%8Fb', 'a full-width slash'],
    ['/api/%EF%BC%8E%EF%BC%8E/b', 'full-width dots'],
    ['/api/a%EF%BC%85b', 'a full-width percent sign'],
    ['/api/a b', 'a space'],
    ['/api/a\tb', 'a tab'],
    ['/api/a"b', 'a quotation mark'],
    ['/api/<a>', 'angle brackets'],
    ['/api/{id}', 'braces'],
    ['/api/a|b', 'a bar'],
    ['/api/a^b', 'a caret'],
    ['/api/a`b', 'a backtick'],
    ['/api/[a]', 'brackets'],
    ['/api/é', 'a character that is not ASCII']
  ]
  for (const [path, title] of REJECTED) {
    t.test(`toCanonicalPath rejects ${title}: ${JSON.stringify(path)}`, async (t) => {
      t.equal(toCanonicalPath(path), null)
      t.equal(toCanonicalPath(`${path}?q=1`), null, 'the query is ignored')
    })
  }
})

t.test('KnownPaths', async (t) => {
  const known = new KnownPaths(
    [
      '/api/zones',
      '/api/zones/{id}',
      '/api/zones/busy',
      '/api/audit/logs',
      '/api/mgmt/beacons/{id}',
      '/api/auth/csrf-token'
    ],
    PROTECTED
  )

  for (const path of [
    '/',
    '/api/zones',
    '/api/zones/7',
    '/api/zones/AA:BB',
    '/api/zones/Emergency',
    '/api/zones/a.b',
    '/api/unknown',
    '/api/unknown/',
    '/api/Unknown',
    '/api/zones/7/more/',
    '/api/mgmt/beacons/A/B',
    '/api/admin',
    '/api/admin/Users/X',
    '/api/administrators/',
    '/api/Audits',
    '/api/audit-trail.json',
    '/api/zoneset.csv',
    '/floors/Ground',
    '/api/zones/busy@7',
    '/api/zones/busy.2024',
    '/api/zones/Busy%20Hall',
    '/api/zones/AA:BB:CC:DD:EE:FF',
    '/api/zon%C3%A9s',
    '/api/%E2%80%8B/admin',
    '/api/%20/admin/x',
    '/api/zones/7/%20',
    '/api/admin./x',
    '/api/admin%20',
    '/api/%20admin/x',
    '/api/admin+',
    '/api/admin.json',
    '/api/zones.json',
    '/api/zones:x',
    '/api/auth/csrf-token.json',
    '/api/admin:80',
    '/api/admin=1',
    '/api/audit,x/y',
    '/api/admin~/x',
    '/api/%C3%A1dmin/x'
  ]) {
    t.test(`${path} is not another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), false))
  }

  t.test('a path below the longest known path is not another spelling of it', async (t) => {
    t.equal(new KnownPaths(['/api/zones'], []).isMisspelt('/api/Zones/x'), false)
  })

  for (const path of [
    '/api/zones/',
    '/api/zones/Busy',
    '/api/zones/busy/',
    '/api/zones/7/',
    '/api/Zones',
    '/API/zones/7',
    '/api/ZONES/7',
    '/api/mgmt/Beacons/1',
    '/api/mgmt/beacons/1/',
    '/api/auth/CSRF-token',
    '/api/auth/csrf-token/',
    '/api/admin/',
    '/api/admin/x/',
    '/api/Admin',
    '/Api/admin/x',
    '/api/AUDIT/logs',
    '/api/audit/Logs',
    '/api/%EF%BD%81dmin',
    '/api/%EF%BC%A1DMIN/x',
    '/api/adm%C4%B1n',
    '/api/adm%C4%B0n/x',
    '/api/%E2%93%A9ones',
    '/api/zone%C5%BF/7',
    '/api/ad%E2%80%8Bmin',
    '/api/ad%C2%ADmin/x',
    '/api/%EF%BB%BFzones',
    '/api/zones%E2%81%A4'
  ]) {
    t.test(`${path} is another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), true))
  }
})

t.test('KnownPaths with capitals in a declared path', async (t) => {
  const known = new KnownPaths(['/api/zoneTypes/{id}', '/api/zoneTypes'], PROTECTED)
  for (const path of ['/api/zoneTypes', '/api/zoneTypes/Hall', '/api/zone-types'])
    t.test(`${path} is not another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), false))
  for (const path of ['/api/zonetypes', '/api/ZoneTypes/7', '/api/zoneTypes/'])
    t.test(`${path} is another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), true))
})

t.test('KnownPaths with declared paths that end in a slash', async (t) => {
  const known = new KnownPaths(['/api/floors/', '/api/zones', '/api/zones/', '/api/admin/users/'], PROTECTED)
  for (const path of ['/api/floors/', '/api/zones', '/api/zones/', '/api/admin/users/', '/api/other/'])
    t.test(`${path} is not another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), false))
  for (const path of ['/api/floors', '/api/Floors/', '/api/admin/users', '/api/admin/other/'])
    t.test(`${path} is another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), true))
})

t.test('KnownPaths with text beside a parameter', async (t) => {
  const known = new KnownPaths(['/api/files/{name}.json', '/api/jobs/job-{id}:cancel'], PROTECTED)
  for (const path of ['/api/files/Report.json', '/api/files/a.b.json', '/api/jobs/job-A7:cancel', '/api/files/Report'])
    t.test(`${path} is not another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), false))
  for (const path of [
    '/api/files/report.JSON',
    '/api/Files/report.json',
    '/api/jobs/Job-7:cancel',
    '/api/files/a.json/'
  ])
    t.test(`${path} is another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), true))
})

t.test('KnownPaths matches several parameters in a segment as the router does', async (t) => {
  const known = new KnownPaths(
    ['/api/{a}-{b}.pdf', '/api/t/{z}-{x}-{y}.png', '/api/u/{a}ab{b}', '/api/v/{a}%C3%A9{b}'],
    []
  )
  for (const path of [
    '/api/1-2.pdf',
    '/api/1-2-3.pdf',
    '/api/1-2.PNG',
    '/api/t/1-2-3-4.png',
    '/api/u/xabab',
    '/api/v/1%C3%A92'
  ])
    t.test(`${path} is not another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), false))
  // The router does not match these, but a server with another rule for the end of a parameter may.
  for (const path of [
    '/api/-1-2.pdf',
    '/api/1-2.PDF',
    '/api/t/1--2-3.png',
    '/api/u/xaaby',
    '/api/-.pdf',
    '/api/v/1%C3%892'
  ])
    t.test(`${path} is another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), true))
})

t.test('KnownPaths takes time in proportion to the length of a path', async (t) => {
  const templates = ['{a}-{b}.pdf', '{z}-{x}-{y}.png', '{a}-{b}-{c}-{d}.csv', '{a}aa{b}aa{c}aa{d}', '{a}%C3%A9{b}-{c}']
  const known = new KnownPaths(
    templates.map((template) => `/api/tiles/${template}`),
    []
  )
  const start = process.cpuUsage()
  for (const unit of ['-', 'a', '-a', 'A', '-.', '.pdf-', '%C3%A9', '%C3%89', '%EF%B7%BA', '%CC%87'])
    for (const end of ['', '!', '.pdf', '.PNG', '.csv', '/x'])
      for (let count = 0; count < 20; count += 1)
        known.isMisspelt(`/api/tiles/${unit.repeat(8000 / unit.length)}${end}`)
  const { user, system } = process.cpuUsage(start)
  // 1,200 paths. One of them took more than 5 s.
  t.ok(user + system < 5_000_000, `${(user + system) / 1000} ms`)
})

t.test('KnownPaths reports known paths that are other spellings of known ones', async (t) => {
  const conflicts = (templates: string[], strict: string[] = [], prefixes: string[] = []) =>
    new KnownPaths(templates, strict, prefixes).conflicts()
  t.same(conflicts(['/api/zones/{id}', '/api/Zones']), [
    '/api/Zones must not exist beside /api/zones/{id}: other spellings are rejected'
  ])
  for (const [one, other] of [
    ['/api/zones', '/api/%EF%BD%9Aones'],
    ['/api/zones/{id}/a', '/api/zones/{key}/A'],
    ['/api/files/{a}.json', '/api/files/{b}.JSON'],
    ['/api/files/{a}.json', '/api/files/report.JSON'],
    ['/api/t/{a}-{b}', '/api/T/{a}-{b}/x']
  ] as const) {
    t.ok(conflicts([one, other]).length > 0, `${one} ${other}`)
    t.ok(conflicts([one], [other]).length > 0, `${one} ${other} as a strict path`)
    t.ok(conflicts([one], [], [other]).length > 0, `${one} ${other} as a prefix`)
  }
  t.same(conflicts(['/api/floors/'], ['/api/floors']), [])
  t.same(
    conflicts(['/api/zones', '/api/zones/', '/api/zones/{id}', '/api/zones/{id}.json', '/api/zones/New'], ['/']),
    []
  )
  t.same(conflicts(['/api/w/{a}aa{b}aa{c}', '/api/w/{p}ar{q}', '/api/w/p{q}.pdf']), [])
  t.same(conflicts(['/api/users/{id}', '/api/users/roles', '/api/users/{id}/x', '/{any}/{other}']), [])
})

t.test('KnownPaths with a protected path of several segments', async (t) => {
  const known = new KnownPaths(['/api/reports/{id}'], ['/api/reports/internal'])
  for (const path of ['/api/reports/internal', '/api/reports/internal/x', '/api/reports/7'])
    t.test(`${path} is not another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), false))
  for (const path of ['/api/reports/Internal', '/api/reports/internal/', '/api/Reports/internal/x'])
    t.test(`${path} is another spelling of a known path`, async (t) => t.equal(known.isMisspelt(path), true))
})

const segments = fc.oneof(
  fc.constantFrom(
    'admin',
    'audit',
    'Admin',
    'AUDIT',
    '%61dmin',
    'adm%69n',
    '%EF%BD%81udit',
    'admin.',
    'audit%20',
    'ádmin'
  ),
  fc.constantFrom('..', '.', '', '%2e%2e', '..;', '%2e', ';', '\\', '%5c..', '%2f', '%00', '%252e', '#', '%u002e'),
  fc.constantFrom('api', 'API', 'x', 'zones', '%61pi'),
  fc.string({ maxLength: 6 }),
  fc.string({ unit: 'binary', maxLength: 4 }).map(encoded)
)

function encoded(text: string): string {
  return encodeURIComponent(text.replace(/[\ud800-\udfff]/g, ''))
}

const separators = fc.constantFrom('/', '/', '/', '//', '\\', '%2f', ';/', '/./', '')
const paths = fc
  .array(fc.tuple(separators, segments), { minLength: 1, maxLength: 5 })
  .map((parts) => `/api${parts.flat().join('')}`)

t.test('a canonical path', async (t) => {
  const known = new KnownPaths(['/api/zones/{id}'], PROTECTED)

  t.test('no decoder turns a canonical path into one with stricter access rules', async (t) => {
    await checkProperty(
      t,
      fc.property(paths, (path) => {
        const canonical = toCanonicalPath(path)
        if (canonical === null || known.isMisspelt(canonical)) return true
        return !couldBeStrict(canonical) || ['admin', 'user'].includes(new AccessRules().accessOf(canonical))
      }),
      { numRuns: 5_000 }
    )
  })

  t.test('a URL parser does not change a canonical path', async (t) => {
    await checkProperty(
      t,
      fc.property(paths, (path) => {
        const canonical = toCanonicalPath(path)
        return canonical === null || new URL(canonical, 'http://host').pathname === canonical
      }),
      { numRuns: 5_000 }
    )
  })

  t.test('an id encoded with encodeURIComponent makes a canonical path', async (t) => {
    const ids = fc
      .string({ minLength: 1, maxLength: 20 })
      .filter((id) => !/[/\\;%?#\p{Cc}]/u.test(id) && !/^\.{1,2}$/.test(id))
    await checkProperty(
      t,
      fc.property(ids, (id) => {
        const path = `/api/zones/${encodeURIComponent(id)}`
        return toCanonicalPath(path) === path && !known.isMisspelt(path)
      }),
      { numRuns: 5_000 }
    )
  })
})
