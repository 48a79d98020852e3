import t from 'tap'
import { coreRelay, settled } from '../../../helper/relay-core.js'

const NAMESPACES = {
  channel: {
    namespaces: [
      {
        name: 'chat',
        allow_subscribe_for_client: true,
        allow_publish_for_client: true,
        history_size: 10,
        history_ttl: '60s',
        allow_history_for_client: true,
        command_limits: [{ commands: ['publish'], by: 'user', rate: 2, interval: '10s' }]
      },
      { name: 'open', allow_subscribe_for_client: true, allow_publish_for_client: true }
    ]
  }
}

const TOO_MANY = 111

type Client = Awaited<ReturnType<ReturnType<typeof coreRelay>['connected']>>

let lastId = 10

/** The code of the error reply; 0 for none. */
const run = async (client: Client, method: string, request: object): Promise<number> => {
  const id = ++lastId
  const replies = await client.send({ id, [method]: request })
  for (const reply of replies) {
    const { id: replyId, error } = reply as { id?: number; error?: { code: number } }
    if (replyId === id) return error?.code ?? 0
  }
  throw new Error('no reply')
}

const publish = (client: Client, channel: string): Promise<number> => run(client, 'publish', { channel, data: {} })

t.test('command_limits of a namespace count all connections of a user', async (t) => {
  const { connected, clock } = coreRelay(NAMESPACES)
  const [one, two] = [await connected('ada'), await connected('ada')]
  t.same([await publish(one, 'chat:a'), await publish(two, 'chat:b'), await publish(one, 'chat:c')], [0, 0, TOO_MANY])
  t.equal(await publish(await connected('ada'), 'chat:a'), TOO_MANY, 'a new connection')
  t.equal(await publish(await connected('bob'), 'chat:a'), 0)
  t.equal(await publish(one, 'open:a'), 0, 'another namespace')
  t.equal(await run(one, 'history', { channel: 'chat:a', limit: 1 }), 0, 'another command')
  t.equal(one.closed, null)

  clock.nowMs += 5000
  t.same([await publish(two, 'chat:a'), await publish(two, 'chat:a')], [0, TOO_MANY])
  clock.nowMs += 3_600_000
  t.same([await publish(one, 'chat:a'), await publish(one, 'chat:a'), await publish(one, 'chat:a')], [0, 0, TOO_MANY])
})

t.test('command_limits of all channels count one connection', async (t) => {
  const limits = [{ commands: ['subscribe', 'history'], by: 'client', rate: 2, interval: '1h' }]
  const { connected } = coreRelay({ ...NAMESPACES, client: { command_limits: limits } })
  const one = await connected('ada')
  t.equal(await run(one, 'subscribe', { channel: 'chat:a' }), 0)
  t.equal(await run(one, 'history', { channel: 'chat:a', limit: 1 }), 0)
  t.equal(await run(one, 'subscribe', { channel: 'open:a' }), TOO_MANY, 'the commands of a limit are counted together')
  t.equal(await run(one, 'subscribe', { channel: 'unknown:a' }), TOO_MANY, 'also for a channel that does not exist')
  t.equal(await run(await connected('ada'), 'subscribe', { channel: 'chat:a' }), 0, 'another connection')
})

t.test('command_limits of a connection count its connect command once', async (t) => {
  const limits = [{ commands: ['connect', 'publish'], by: 'client', rate: 2, interval: '1h' }]
  const { connected } = coreRelay({ ...NAMESPACES, client: { command_limits: limits } })
  const one = await connected('ada')

  t.same([await publish(one, 'open:a'), await publish(one, 'open:a')], [0, TOO_MANY])
})

t.test('command_limits count the connects of a user, and an anonymous client by its connection', async (t) => {
  const limits = [{ commands: ['connect', 'publish'], by: 'user', rate: 2, interval: '1h' }]
  const file = { ...NAMESPACES, client: { command_limits: limits, disallow_anonymous_connection_tokens: false } }
  const { connected } = coreRelay(file)
  const [one, two] = [await connected('ada'), await connected('ada')]
  t.same([one.closed, two.closed], [null, null])
  const third = await connected('ada')
  t.equal(third.client.state, 'rejected')
  t.equal((await connected('bob')).client.state, 'live')
  const anonymous = [await connected(''), await connected(''), await connected('')]
  t.same(
    anonymous.map(({ client }) => client.state),
    ['live', 'live', 'live']
  )
})

t.test('a command that exceeds one limit is not counted by another', async (t) => {
  const limits = [
    { commands: ['publish'], by: 'client', rate: 1, interval: '10s' },
    { commands: ['publish'], by: 'user', rate: 2, interval: '1h' }
  ]
  const { connected, clock } = coreRelay({ ...NAMESPACES, client: { command_limits: limits } })
  const one = await connected('ada')
  t.same([await publish(one, 'open:a'), await publish(one, 'open:a'), await publish(one, 'open:a')], [0, 111, 111])
  clock.nowMs += 10_000
  t.equal(await publish(one, 'open:a'), 0)
})

t.test('limits of all channels and of channels without a namespace are counted separately', async (t) => {
  const publishing = (rate: number, by: string) => [{ commands: ['publish'], by, rate, interval: '1h' }]
  const { connected } = coreRelay({
    client: { command_limits: publishing(3, 'user') },
    channel: { without_namespace: { allow_publish_for_client: true, command_limits: publishing(2, 'user') } }
  })
  const one = await connected('ada')
  t.same([await publish(one, 'a'), await publish(one, 'a'), await publish(one, 'a')], [0, 0, TOO_MANY])
})

t.test('a command that exceeds a limit of the user is not counted for its connection', async (t) => {
  const limits = [
    { commands: ['publish'], by: 'client', rate: 2, interval: '1h' },
    { commands: ['publish'], by: 'user', rate: 1, interval: '10s' }
  ]
  const { connected, clock } = coreRelay({ ...NAMESPACES, client: { command_limits: limits } })
  const one = await connected('ada')
  t.same([await publish(one, 'open:a'), await publish(one, 'open:a')], [0, TOO_MANY])
  clock.nowMs += 10_000
  t.equal(await publish(one, 'open:a'), 0)
})

t.test('commands keep their order while the engine counts them', async (t) => {
  const answers: ((isTaken: boolean) => void)[] = []
  const userRates = { take: () => new Promise<boolean>((resolve) => answers.push(resolve)) }
  const { connected } = coreRelay(NAMESPACES, { userRates })
  const one = await connected('ada')
  const publication = { channel: 'chat:a', data: {} }
  const waiting = await one.send(
    { id: 2, publish: publication },
    { id: 3, history: { channel: 'chat:a', limit: 1 } },
    { id: 4, publish: publication },
    { id: 5, unsubscribe: { channel: 'chat:a' } }
  )
  t.same(waiting, [])
  t.equal(answers.length, 1)
  answers[0]?.(true)
  await settled()
  answers[1]?.(false)
  await settled()
  t.same(
    one.received().map((reply) => [reply.id, reply.error?.code]),
    [
      [2, undefined],
      [3, undefined],
      [4, TOO_MANY],
      [5, undefined]
    ]
  )
})

t.test('a command of a client that closes while the engine counts it is not executed', async (t) => {
  const answers: ((isTaken: boolean) => void)[] = []
  const userRates = { take: () => new Promise<boolean>((resolve) => answers.push(resolve)) }
  const { connected, engine } = coreRelay(NAMESPACES, { userRates })
  const one = await connected('ada')
  await one.send({ id: 2, publish: { channel: 'chat:a', data: {} } })
  one.client.connectionLost()
  answers[0]?.(true)
  await settled()
  const range = { since: null, limit: -1, reverse: false }
  const options = { historySize: 10, historyTtlMs: 60_000, historyMetaTtlMs: 60_000 }
  t.same((await engine.read('chat:a', range, options)).publications, [])
})

t.test(
  'a client whose token is invalidated while the engine counts its connect command does not connect',
  async (t) => {
    const answers: ((isTaken: boolean) => void)[] = []
    const userRates = { take: () => new Promise<boolean>((resolve) => answers.push(resolve)) }
    const limits = [{ commands: ['connect'], by: 'user', rate: 2, interval: '1h' }]
    const file = { client: { command_limits: limits, user_tokens_invalidate: { enabled: true } } }
    const { client, token, relay, clock } = coreRelay(file, { userRates })
    await relay.start()
    const one = client()
    await one.send({ id: 1, connect: { token: token({ sub: 'ada' }) } })
    t.equal(answers.length, 1)
    t.equal(await relay.invalidateTokens('ada', '', clock.nowMs / 1000), null)
    answers[0]?.(true)
    await settled()
    t.equal(one.client.state, 'closed')
  }
)
