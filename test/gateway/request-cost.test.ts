import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { KnownPaths } from '../../src/gateway/http/known-paths.js'
import { backendRequestHeaders } from '../../src/gateway/proxy/request-headers.js'
import { routeTables } from '../../src/gateway/routes/index.js'
import { pathTemplate } from '../../src/gateway/routes/tables/declare.js'
import { toCanonicalPath } from '../../src/shared/request-path.js'

// With quadratic cost the factor would be in the hundreds.
const FACTOR = 20
const ROUNDS = 50

/** The CPU time of one call: the minimum of many, so that other load does not count. */
const costOf = (act: () => void): number => {
  const times = Array.from({ length: ROUNDS }, () => {
    const start = process.hrtime.bigint()
    for (let call = 0; call < 10; call++) act()
    return Number(process.hrtime.bigint() - start)
  })
  return Math.min(...times)
}

t.test('a path of 4,000 segments costs about as much as another of its length', async (t) => {
  const known = new KnownPaths(
    routeTables.flatMap(({ rows }) => rows.map(({ path }) => pathTemplate(path))),
    ['/api/admin', '/api/audit']
  )
  const check = (path: string) => () => known.isMisspelt(toCanonicalPath(path) ?? '')
  const plain = costOf(check(`/api/${'Aa'.repeat(4000)}`))

  for (const segment of ['/A', '/a', '/+', '/.a']) {
    const cost = costOf(check(`/api${segment.repeat(4000)}`))
    t.ok(cost < FACTOR * plain, `${segment}: ${cost} ns, and ${plain} ns for one segment`)
  }
})

t.test(
  'the cost of a Connection header with thousands of names does not grow with the number of other headers',
  async (t) => {
    const connection = Array.from({ length: 2700 }, (_, index) => `z-${100 + (index % 900)}`).join()
    const forward = (count: number) => {
      const headers = Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${100 + index}`, '1']))
      // The fields that the headers are made from.
      const request = {
        raw: { headers: { ...headers, connection } },
        headers: {},
        exchangedToken: 'token',
        protocol: 'http',
        host: 'a',
        clientAddress: '192.0.2.1',
        id: '1'
      } as unknown as FastifyRequest
      return () => backendRequestHeaders(request, null, 'none', null)
    }
    const few = costOf(forward(1))

    const many = costOf(forward(95))
    t.ok(many < (FACTOR / 4) * few, `${many} ns with 95 headers, and ${few} ns with one`)
  }
)
