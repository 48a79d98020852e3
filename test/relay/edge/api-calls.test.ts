import t from 'tap'
import { EngineFault } from '../../../src/relay/core/engine-fault.js'
import { ApiCalls } from '../../../src/relay/edge/api-calls.js'
import { FleetOfOne } from '../../../src/relay/engine/fleet-of-one.js'
import { coreRelay } from '../../helper/relay-core.js'

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined }
const UNWATCHED = { apiAnswered: () => undefined, apiRefused: () => undefined }

t.test('a broadcast answers for each channel, where the servers of some are away', async (t) => {
  const { engine } = coreRelay()
  const broker = Object.assign(Object.create(engine), {
    start: () => undefined,
    publish: async (channel: string) => {
      if (channel === 'floor:1') throw new EngineFault('away')
      return { epoch: 'e', offset: 3, suppressedBy: null }
    }
  })
  const calls = new ApiCalls(coreRelay(undefined, { broker }).relay, UNWATCHED, SILENT)
  const reply = await calls.one('broadcast', Buffer.from('{"channels":["floor:1","floor:2"],"data":1}'))

  t.same(JSON.parse(String(reply)).result.responses, [
    { error: { code: 100, message: 'internal server error' } },
    { result: { offset: 3, epoch: 'e' } }
  ])
})

t.test('what is done to a user is not said to be done while other nodes cannot be reached', async (t) => {
  class Cut extends FleetOfOne {
    override readonly isWhole: boolean = false
  }
  const calls = new ApiCalls(coreRelay(undefined, { fleet: new Cut() }).relay, UNWATCHED, SILENT)
  for (const method of ['disconnect', 'unsubscribe', 'subscribe', 'refresh']) {
    t.match(
      await calls.one(method, Buffer.from('{"user":"42","channel":"floor:7"}')),
      { code: 100, temporary: true },
      method
    )
  }
  t.match(await calls.one('info', Buffer.from('{}')), /"nodes":/, 'what is known here is told')
})
