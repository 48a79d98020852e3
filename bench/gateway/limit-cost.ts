import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { limitedPath } from '../../src/gateway/limits/limited-path.js'
import type { RequestLimit } from '../../src/gateway/limits/limits-file.js'
import { RequestLimits, type RequestLimitsOptions } from '../../src/gateway/limits/request-limits.js'

const REQUESTS = 200_000
const ROUNDS = 9
const USERS = 1000

const limit = ({
  path,
  ...fields
}: Pick<RequestLimit, 'name' | 'by'> & Partial<RequestLimit> & { readonly path: string }): RequestLimit => ({
  paths: [limitedPath(path)],
  methods: null,
  burst: 1_000_000,
  intervalMs: 0.001,
  ...fields
})

/** The limits of the how-to page: for a request of a user, one counts twice, one does not match the path, and one not the method. */
const LIMITS = [
  limit({ name: 'reports', path: '/api/reports', by: 'user' }),
  limit({ name: 'everything', path: '/', by: 'both' }),
  limit({ name: 'zone', path: '/api/zones/{id}', by: 'user', methods: new Set(['PUT', 'DELETE']) })
]

type Hook = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void

/** CPU microseconds that both hooks of the limits in memory take for a request: the best of several rounds. */
export const limitCost = (): number => {
  const [byAddress, byUser] = hooksOf(LIMITS)
  const requests = Array.from({ length: USERS }, (_, index) => ({
    method: 'GET',
    path: '/api/zones',
    clientAddress: `203.0.113.${index % 200}`,
    auth: { userId: `user-${index}`, exp: 0 },
    addressBuckets: null,
    routeOptions: { url: '/api/zones', config: {} }
  }))
  const reply = { headers: () => undefined } as unknown as FastifyReply
  const done = (): void => undefined
  const round = (): number => {
    const start = process.cpuUsage()
    for (let count = 0; count < REQUESTS; count++) {
      // The fields that the hooks read.
      const request = requests[count % USERS] as unknown as FastifyRequest
      request.addressBuckets = null
      byAddress(request, reply, done)
      byUser(request, reply, done)
    }
    const { user, system } = process.cpuUsage(start)
    return (user + system) / REQUESTS
  }
  return Math.min(...Array.from({ length: ROUNDS }, round))
}

const hooksOf = (limits: readonly RequestLimit[]): readonly [Hook, Hook] => {
  const hooks: Hook[] = []
  // The two methods that the hooks are registered with.
  const app = {
    decorateRequest: () => undefined,
    addHook: (_name: string, hook: Hook) => hooks.push(hook)
  } as unknown as FastifyInstance
  // No request is rejected, so nothing is audited.
  const unused = {} as RequestLimitsOptions['audit'] & RequestLimitsOptions['secretPaths']
  const requestLimits = new RequestLimits({
    limits,
    shared: null,
    audit: unused,
    secretPaths: unused,
    monotonicMs: () => performance.now()
  })
  requestLimits.addAddressHook(app)
  requestLimits.addUserHook(app)
  const [one, two] = hooks
  if (one === undefined || two === undefined) throw new Error('the limits have registered no hooks')
  return [one, two]
}
