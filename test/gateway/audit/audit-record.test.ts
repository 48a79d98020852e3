import fc from 'fast-check'
import t from 'tap'
import { type AuditedRejection, auditLine, overflowLine } from '../../../src/gateway/audit/audit-record.js'
import { checkProperty } from '../../helper/property.js'
import { rejection, START } from './audit-fixture.js'

const parsed = (changes: Partial<AuditedRejection>) => JSON.parse(auditLine(rejection(changes), START))

const ADMIN_SEEKER = { id: '42', email: 'ada@example.com', role: 'viewer' }

t.test('an audit line', async (t) => {
  t.test('an audit line has the user, the request, the time and the reason', async (t) => {
    const kinds: Array<[AuditedRejection['event'], number, string, AuditedRejection['user']]> = [
      ['unauthorized_access', 401, 'TOKEN_EXPIRED', null],
      ['forbidden_access', 403, 'FORBIDDEN', ADMIN_SEEKER]
    ]
    for (const [event, status, reason, user] of kinds) {
      const line = auditLine(
        rejection({ event, status, reason, user, method: 'PUT', resource: '/api/admin/users' }),
        START
      )
      t.equal(
        line,
        JSON.stringify({
          timestamp: '2026-01-02T03:04:05.678Z',
          event,
          ip: '203.0.113.9',
          resource: '/api/admin/users',
          method: 'PUT',
          result: 'denied',
          status,
          reason,
          user,
          requestId: 'r-1',
          userAgent: 'Firefox'
        })
      )
    }
  })

  t.test('an audit line has null for missing headers', async (t) => {
    t.match(parsed({ userAgent: undefined, user: { id: '42', email: null, role: null } }), {
      userAgent: null,
      user: { id: '42', email: null, role: null }
    })
  })

  t.test('an audit line does not contain the query', async (t) => {
    t.equal(parsed({ resource: '/api/zones?token=s3cret&x=?' }).resource, '/api/zones')
  })

  t.test('an audit line does not contain unknown fields', async (t) => {
    const careless = {
      ...rejection({ user: ADMIN_SEEKER }),
      token: 's3cret',
      cookie: 's3cret',
      body: { password: 's3cret' }
    }
    t.notMatch(auditLine(careless, START), 's3cret')
  })

  const hostile: Array<[value: string, recorded: string, title: string]> = [
    ['x\r\n{"event":"forged"}', 'x\r\n{"event":"forged"}', 'a carriage return and line feed'],
    ['x\0y', 'x\0y', 'a NUL'],
    ['x\u0085y\u009by\u007f', 'x\u0085y\u009by\u007f', 'DEL and C1 controls'],
    ['x\u2028y\u2029', 'x\u2028y\u2029', 'the Unicode line and paragraph separators'],
    ['x\u202ey\u2066', 'x\u202ey\u2066', 'marks that turn the reading direction'],
    ['"}\\', '"}\\', 'quotes and backslashes'],
    ['x\ud83d', 'x\ufffd', 'a high surrogate alone'],
    ['\ude00x', '\ufffdx', 'a low surrogate alone'],
    ['\ud83d\ude00', '\ud83d\ude00', 'a whole surrogate pair']
  ]
  for (const [value, recorded, title] of hostile) {
    t.test(`an audit line with ${title} is one line of plain text`, async (t) => {
      const line = auditLine(rejection({ userAgent: value, user: { id: value, email: value, role: value } }), START)
      t.notMatch(line, /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u202a-\u202e\u2066-\u2069]/u)
      t.match(JSON.parse(line), { userAgent: recorded, user: { id: recorded, email: recorded, role: recorded } })
    })
  }

  const bounds: Array<[field: string, max: number, read: (long: string) => string]> = [
    ['resource', 1024, (long) => parsed({ resource: long }).resource],
    ['userAgent', 256, (long) => parsed({ userAgent: long }).userAgent],
    ['ip', 256, (long) => parsed({ ip: long }).ip],
    ['method', 256, (long) => parsed({ method: long }).method],
    ['reason', 256, (long) => parsed({ reason: long }).reason],
    ['requestId', 256, (long) => parsed({ requestId: long }).requestId],
    ['user.id', 256, (long) => parsed({ user: { ...ADMIN_SEEKER, id: long } }).user.id],
    ['user.email', 254, (long) => parsed({ user: { ...ADMIN_SEEKER, email: long } }).user.email],
    ['user.role', 256, (long) => parsed({ user: { ...ADMIN_SEEKER, role: long } }).user.role]
  ]
  for (const [field, max, read] of bounds) {
    t.test(`an audit line truncates ${field} to ${max} characters, never inside a surrogate pair`, async (t) => {
      t.equal(read('a'.repeat(max)), 'a'.repeat(max))
      t.equal(read('a'.repeat(102_400)), 'a'.repeat(max))
      t.equal(read(`${'a'.repeat(max - 1)}\u{1f600}`), 'a'.repeat(max - 1))
      t.equal(read(`${'a'.repeat(max - 2)}\u{1f600}b`), `${'a'.repeat(max - 2)}\u{1f600}`)
    })
  }

  t.test('an audit line has null for a value of the wrong type', async (t) => {
    // A token of the backend may have claims of any type.
    const claims = { id: 42, email: ['a'], role: {} } as unknown as AuditedRejection['user']
    t.same(parsed({ user: claims }).user, { id: null, email: null, role: null })
  })

  t.test('an audit line is one bounded line of JSON for any text', async (t) => {
    // Code units, so that lone surrogates occur too.
    const anyText = fc.uint16Array({ maxLength: 1500 }).map((units) => String.fromCharCode(...units))
    const property = fc.property(anyText, anyText, anyText, (resource, userAgent, email) => {
      const line = auditLine(rejection({ resource, userAgent, user: { ...ADMIN_SEEKER, email } }), START)
      const record = JSON.parse(line)
      return (
        !/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u.test(line) &&
        record.resource.length <= 1024 &&
        record.userAgent.length <= 256 &&
        record.user.email.length <= 254
      )
    })
    await checkProperty(t, property)
  })
})

t.test('an overflow line has the number of dropped records', async (t) => {
  t.equal(overflowLine(3, START), '{"timestamp":"2026-01-02T03:04:05.678Z","event":"audit_overflow","dropped":3}')
})
