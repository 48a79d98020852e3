import t from 'tap'
import { ApiDispatcher } from '../../../src/relay/api/dispatcher.js'
import { type CommandResult, EngineError } from '../../../src/relay/core/engine.js'
import { TimeSlice } from '../../../src/relay/core/time-slice.js'
import { SingleNodeCluster } from '../../../src/relay/engine/memory.js'
import { coreRelay } from '../../helper/relay-core.js'

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined }
const UNWATCHED = { apiReplied: () => undefined, apiError: () => undefined, unexpectedError: () => undefined }

t.test('a broadcast has a result or an error for each channel if some engine calls fail', async (t) => {
  const { engine } = coreRelay()
  const broker = Object.assign(Object.create(engine), {
    start: () => undefined,
    publish: async (channel: string) => {
      if (channel === 'floor:1') throw new EngineError('away')
      return { epoch: 'e', offset: 3, suppressedBy: null }
    }
  })
  const calls = new ApiDispatcher(coreRelay(undefined, { broker }).relay, UNWATCHED, SILENT)
  const reply = await calls.runMethod('broadcast', Buffer.from('{"channels":["floor:1","floor:2"],"data":1}'))

  t.same(JSON.parse(String(reply)).result.responses, [
    { error: { code: 100, message: 'internal server error' } },
    { result: { offset: 3, epoch: 'e' } }
  ])
})

t.test('a command that not all nodes confirm receives error 100', async (t) => {
  class UnconfirmedCluster extends SingleNodeCluster {
    override async apply(): Promise<CommandResult> {
      return { results: [], isConfirmed: false }
    }
  }
  const calls = new ApiDispatcher(coreRelay(undefined, { cluster: new UnconfirmedCluster() }).relay, UNWATCHED, SILENT)
  for (const method of ['disconnect', 'unsubscribe', 'subscribe', 'refresh']) {
    t.match(
      await calls.runMethod(method, Buffer.from('{"user":"42","channel":"floor:7"}')),
      { code: 100, temporary: true },
      method
    )
  }
  t.match(await calls.runMethod('info', Buffer.from('{}')), /"nodes":/, 'info contains the nodes that responded')
})

t.test(
  'subscribe with an expire_at in the past is an internal error, and the connection is not subscribed',
  async (t) => {
    const core = coreRelay()
    const client = await core.connected('42')
    const calls = new ApiDispatcher(core.relay, UNWATCHED, SILENT)
    const subscribe = (expireAt: number) =>
      calls.runMethod('subscribe', Buffer.from(JSON.stringify({ user: '42', channel: 'floor:7', expire_at: expireAt })))
    const nowSeconds = core.clock.nowMs / 1000

    t.match(await subscribe(nowSeconds), { code: 100 })
    t.equal((await core.relay.channels('', new TimeSlice(() => 0))).size, 0)
    t.equal(await subscribe(nowSeconds + 1), '{"result":{}}')
    t.equal(client.closed, null)
  }
)

t.test('a broadcast is validated once per schema', async (t) => {
  const validated: [schema: string, data: unknown][] = []
  const schemaFault = (schema: string, data: unknown) => {
    validated.push([schema, data])
    return schema === 'PositionBatch' ? null : 'it does not fit'
  }
  const namespaces = [
    { name: 'fits', schema: 'PositionBatch' },
    { name: 'other', schema: 'AmbientBatch' }
  ]
  const { relay } = coreRelay({ channel: { namespaces } }, { schemaError: schemaFault })
  const calls = new ApiDispatcher(relay, UNWATCHED, SILENT)
  const channels = ['fits:1', 'other:1', 'fits:2', 'other:2']
  const reply = await calls.runMethod('broadcast', Buffer.from(JSON.stringify({ channels, data: [7] })))

  t.same(validated, [
    ['PositionBatch', [7]],
    ['AmbientBatch', [7]]
  ])
  const rejected = { error: { code: 107, message: 'bad request: it does not fit' } }
  t.same(JSON.parse(String(reply)).result.responses, [{ result: {} }, rejected, { result: {} }, rejected])
})

t.test('a command with a malformed method receives error 104', async (t) => {
  const calls = new ApiDispatcher(coreRelay().relay, UNWATCHED, SILENT)
  const DEPTH = 100_000
  const methods = [
    '{"toString":1,"valueOf":1}',
    `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`,
    'true',
    '[9]',
    '99',
    '-1',
    '0.5'
  ]
  const body = methods.map((method) => `{"method":${method},"params":{}}`).join('\n')
  const replies = String(await calls.runCommands(Buffer.from(body))).split('\n')

  t.same(
    replies,
    methods.map(() => '{"error":{"code":104,"message":"not found"}}')
  )
  t.match(await calls.runCommands(Buffer.from('{"method":9,"params":null}')), /"nodes":/, 'a number names one')
})

t.test('a duplicate field is rejected by name', async (t) => {
  const calls = new ApiDispatcher(coreRelay().relay, UNWATCHED, SILENT)
  const rejected = (name: string) => ({ error: { code: 107, message: `bad request: ${name} must be there once` } })

  const many = await calls.runCommands(Buffer.from('{"method":"info","params":{},"p\\u0061rams":null}'))
  t.same(JSON.parse(String(many)), rejected('params'))
  const batch = await calls.runMethod('batch', Buffer.from('{"commands":[{"info":{},"info":{}},{"channels":{}}]}'))
  t.same(JSON.parse(String(batch)).replies, [rejected('info'), { channels: { channels: {} } }])
  const { error } = rejected('commands')
  t.match(await calls.runMethod('batch', Buffer.from('{"commands":[],"commands":[]}')), error)
})

t.test('a body with more than 10,000 commands is rejected and no command runs', async (t) => {
  const { relay } = coreRelay()
  const calls = new ApiDispatcher(relay, UNWATCHED, SILENT)
  const rejected = { code: 107, message: 'bad request: commands must be at most 10000' }
  const many = (count: number) =>
    Buffer.from('{"method":"publish","params":{"channel":"floor:1","data":1}}'.repeat(count))
  const batch = (count: number) =>
    Buffer.from(`{"commands":[${Array(count).fill('{"publish":{"channel":"floor:1","data":1}}').join()}]}`)

  t.match(await calls.runCommands(many(10_001)), rejected)
  t.match(await calls.runMethod('batch', batch(10_001)), rejected)
  const first = JSON.parse(String(await calls.runMethod('publish', Buffer.from('{"channel":"floor:1","data":1}'))))
  t.equal(first.result.offset, 1)

  t.equal(String(await calls.runCommands(many(10_000))).split('\n').length, 10_000)
  t.equal(JSON.parse(String(await calls.runMethod('batch', batch(10_000)))).replies.length, 10_000)
})
