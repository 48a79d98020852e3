import t from 'tap'
import type { GatewayError } from '../../../src/gateway/errors.js'
import { acquireSlot, BackendCapacity, type CapacityRequest } from '../../../src/gateway/proxy/capacity.js'

class TestRequest implements CapacityRequest {
  readonly streams: boolean
  readonly anonymous: boolean
  outcome: string | null = null

  constructor({ streams = false, anonymous = false } = {}) {
    this.streams = streams
    this.anonymous = anonymous
  }

  onAcquired(): void {
    this.outcome = 'acquired'
  }

  onRejected({ code }: GatewayError): void {
    this.outcome = code
  }
}

const requests = (count: number, kind: { streams?: boolean; anonymous?: boolean } = {}): TestRequest[] =>
  Array.from({ length: count }, () => new TestRequest(kind))

const pair = (kind = {}): [TestRequest, TestRequest] => [new TestRequest(kind), new TestRequest(kind)]
const triple = (kind = {}): [TestRequest, TestRequest, TestRequest] => [...pair(kind), new TestRequest(kind)]

const outcomes = (all: readonly TestRequest[]): (string | null)[] => all.map(({ outcome }) => outcome)

const FOREVER_MS = 600_000
const capacityOf = (connections: number, inFlight = 100, maxWaitMs = FOREVER_MS): BackendCapacity =>
  new BackendCapacity({ connections, inFlight, anonymousPercent: 25, maxWaitMs })

/** Settles when queued requests have been served. */
const release = (capacity: BackendCapacity, request: TestRequest): Promise<void> => {
  capacity.release(request)
  return new Promise(setImmediate)
}

t.test('requests run at once while connections are free', async (t) => {
  const capacity = capacityOf(2)
  const all = requests(2)
  for (const request of all) capacity.acquire(request)

  t.same(outcomes(all), ['acquired', 'acquired'])
  t.equal(capacity.inFlight, 2)
})

t.test('a free connection goes to the request that has waited longest', async (t) => {
  const capacity = capacityOf(1)
  const [first, second, third] = triple()
  for (const request of [first, second, third]) capacity.acquire(request)
  t.equal(second.outcome, null, 'queued')

  await release(capacity, first)
  t.same(outcomes([second, third]), ['acquired', null])
  await release(capacity, second)
  t.equal(third.outcome, 'acquired')
  await release(capacity, third)
  t.equal(capacity.inFlight, 0)
})

t.test('a queued request runs after the current callback, and a new request does not overtake it', async (t) => {
  const capacity = capacityOf(1)
  const [first, second, third] = triple()
  capacity.acquire(first)
  capacity.acquire(second)

  const released = release(capacity, first)
  t.equal(second.outcome, null, 'release does not run the next task itself')
  capacity.acquire(third)
  t.equal(third.outcome, null)
  await released
  t.same(outcomes([second, third]), ['acquired', null])
  capacity.cancel(third)
})

t.test('a request that is cancelled between a release and its turn does not run', async (t) => {
  const capacity = capacityOf(1)
  const [first, second, third] = triple()
  for (const request of [first, second, third]) capacity.acquire(request)

  const released = release(capacity, first)
  capacity.cancel(second)
  await released
  t.same(outcomes([second, third]), [null, 'acquired'])
  t.equal(capacity.inFlight, 1)
})

t.test('a cancelled request is not counted and does not run', async (t) => {
  const capacity = capacityOf(1)
  const [first, second, third] = triple()
  for (const request of [first, second, third]) capacity.acquire(request)

  capacity.cancel(second)
  t.equal(capacity.inFlight, 2)
  await release(capacity, first)
  t.same(outcomes([second, third]), [null, 'acquired'])
  await release(capacity, third)
})

t.test('a request beyond the maximum in flight is rejected and not counted', async (t) => {
  const capacity = capacityOf(1, 2)
  const [first, second, third] = triple()
  for (const request of [first, second, third]) capacity.acquire(request)

  t.equal(third.outcome, 'OVERLOADED')
  t.equal(capacity.inFlight, 2)
  capacity.cancel(second)
  await release(capacity, first)
})

t.test('streams use at most half of the connections', async (t) => {
  const capacity = capacityOf(4)
  const streams = triple({ streams: true })
  const [firstStream, , thirdStream] = streams
  for (const request of streams) capacity.acquire(request)
  t.equal(thirdStream.outcome, null, 'the third waits although two connections are free')

  const others = pair()
  for (const request of others) capacity.acquire(request)
  t.same(outcomes(others), ['acquired', 'acquired'], 'other requests pass it')
  await release(capacity, others[0])
  t.equal(thirdStream.outcome, null, 'a connection of another request is not for a stream')
  await release(capacity, firstStream)
  t.equal(thirdStream.outcome, 'acquired')
})

t.test('one stream can run when there is only one connection', async (t) => {
  const capacity = capacityOf(1)
  const stream = new TestRequest({ streams: true })
  capacity.acquire(stream)
  t.equal(stream.outcome, 'acquired')
})

t.test('a queued request is rejected with BACKEND_TIMEOUT at the deadline', async (t) => {
  const capacity = capacityOf(1, 100, 1)
  const first = new TestRequest()
  capacity.acquire(first)

  await t.rejects(acquireSlot(capacity, false, new AbortController().signal), { code: 'BACKEND_TIMEOUT' })
  t.equal(capacity.inFlight, 1)
  await release(capacity, first)
  t.equal(capacity.inFlight, 0)
})

t.test('anonymous requests use at most a quarter of the connections', async (t) => {
  const capacity = capacityOf(8)
  const anonymous = triple({ anonymous: true })
  for (const request of anonymous) capacity.acquire(request)
  t.same(outcomes(anonymous), ['acquired', 'acquired', null], 'the third waits although six connections are free')
  const verified = requests(5)
  const lastVerified = new TestRequest()
  for (const request of [...verified, lastVerified]) capacity.acquire(request)
  t.same(new Set(outcomes(verified)), new Set(['acquired']))

  await release(capacity, lastVerified)
  t.equal(anonymous[2].outcome, null, 'a connection of a verified request is not for an anonymous one')
  await release(capacity, anonymous[0])
  t.equal(anonymous[2].outcome, 'acquired')
  t.equal(capacity.inFlight, 7)
})

t.test('anonymous streams use at most a quarter of the streaming connections', async (t) => {
  const capacity = capacityOf(16)
  const anonymous = triple({ anonymous: true, streams: true })
  for (const request of anonymous) capacity.acquire(request)
  const firstVerified = new TestRequest({ streams: true })
  const verified = requests(5, { streams: true })
  const lastVerified = new TestRequest({ streams: true })
  for (const request of [firstVerified, ...verified, lastVerified]) capacity.acquire(request)

  t.same(outcomes(anonymous), ['acquired', 'acquired', null])
  t.same(new Set(outcomes([firstVerified, ...verified])), new Set(['acquired']))
  t.equal(lastVerified.outcome, null)
  await release(capacity, firstVerified)
  t.equal(anonymous[2].outcome, null)
  t.equal(lastVerified.outcome, 'acquired')
  capacity.cancel(anonymous[2])
})

t.test('anonymous requests use at most a quarter of the requests in flight', async (t) => {
  const capacity = capacityOf(4, 8)
  const anonymous = triple({ anonymous: true })
  for (const request of anonymous) capacity.acquire(request)
  t.same(outcomes(anonymous), ['acquired', null, 'OVERLOADED'])
  capacity.cancel(anonymous[1])
  capacity.cancel(anonymous[1])
  t.equal(capacity.inFlight, 1, 'cancelling twice counts once')
  const verified = requests(7)
  for (const request of verified) capacity.acquire(request)
  t.notOk(outcomes(verified).includes('OVERLOADED'))
  for (const request of verified) if (request.outcome === null) capacity.cancel(request)
})

t.test('an anonymous request that waits in vain while connections are free is rejected with OVERLOADED', async (t) => {
  const capacity = capacityOf(4, 100, 1)
  capacity.acquire(new TestRequest({ anonymous: true }))
  const code = await new Promise((resolve) => {
    capacity.acquire({
      streams: false,
      anonymous: true,
      onAcquired: () => resolve('acquired'),
      onRejected: (error) => resolve(error.code)
    })
  })

  t.equal(code, 'OVERLOADED')
  t.equal(capacity.inFlight, 1)
})

t.test('acquireSlot rejects with the reason of its signal and leaves the queue', async (t) => {
  const capacity = capacityOf(1)
  const first = new TestRequest()
  capacity.acquire(first)
  const abort = new AbortController()
  const slot = acquireSlot(capacity, false, abort.signal)
  t.equal(capacity.inFlight, 2)

  abort.abort(new Error('disconnected'))

  await t.rejects(slot, { message: 'disconnected' })
  t.equal(capacity.inFlight, 1)
  await release(capacity, first)
})
