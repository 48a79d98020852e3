import t from 'tap'
import { ERROR_LIMIT_EXCEEDED } from '../../../../src/relay/core/codes.js'
import { PAGE_SIZE, TokenInvalidations } from '../../../../src/relay/core/session/token-invalidations.js'
import { ClusterWithGaps } from '../../../helper/cluster-with-gaps.js'
import { recordedLog } from '../../../helper/recorded-log.js'
import { coreRelay, settled } from '../../../helper/relay-core.js'

t.test('a relay that starts reads more than one page of invalidated tokens', async (t) => {
  const file = { client: { user_tokens_invalidate: { enabled: true } } }
  const earlier = coreRelay(file)
  await settled()
  const issuedBefore = earlier.clock.nowMs / 1000
  for (let n = 0; n < PAGE_SIZE; n++) await earlier.relay.invalidateTokens(`user-${n}`, '', issuedBefore)
  t.equal(await earlier.relay.invalidateTokens('ada', '', issuedBefore), null)

  const { engine } = earlier
  const history = {
    read: (...args: Parameters<typeof engine.read>) => engine.read(...args),
    remove: (channel: string) => engine.remove(channel)
  }
  const { client, token } = coreRelay(file, { history })
  await settled()
  const outcome = async (user: string) => {
    const [reply] = await client().send({ id: 1, connect: { token: token({ sub: user }) } })
    return reply?.error?.code ?? 'connected'
  }
  t.equal(await outcome('ada'), 109)
  t.equal(await outcome('bob'), 'connected')
})

t.test('a relay that has missed commands reads the tokens that were invalidated meanwhile', async (t) => {
  const file = { client: { user_tokens_invalidate: { enabled: true } } }
  const other = coreRelay(file)
  const cluster = new ClusterWithGaps()
  const { engine } = other
  const history = {
    read: (...args: Parameters<typeof engine.read>) => engine.read(...args),
    remove: (channel: string) => engine.remove(channel)
  }
  const { connected } = coreRelay(file, { history, cluster })
  await settled()
  await other.relay.invalidateTokens('ada', '', other.clock.nowMs / 1000)
  t.equal((await connected('ada')).client.state, 'live')
  cluster.missedCommands()
  await settled()

  t.equal((await connected('ada')).client.state, 'rejected')
  t.equal((await connected('bob')).client.state, 'live')
})

t.test('an unexpected error of the engine is logged once, until the invalidated tokens can be read', async (t) => {
  const { engine, clock } = coreRelay()
  const { lines, log } = recordedLog()
  let isBroken = true
  const retries: (() => void)[] = []
  const invalidations = new TokenInvalidations({
    broker: engine,
    history: {
      read: (...args) => {
        if (isBroken) throw new TypeError('a bug')
        return engine.read(...args)
      }
    },
    nowMs: () => clock.nowMs,
    setTimer: (task) => {
      retries.push(task)
      return () => undefined
    },
    log,
    options: () => ({ ttlMs: 60_000 })
  })
  const retry = async (): Promise<void> => {
    retries.shift()?.()
    await settled()
  }
  await invalidations.load()
  await retry()
  t.equal(invalidations.areKnown, false)
  isBroken = false
  await retry()
  t.equal(invalidations.areKnown, true)

  t.match(lines, [
    { msg: 'token invalidations not read', err: { message: 'a bug' } },
    { msg: 'token invalidations read again' }
  ])
  t.equal(lines.length, 2)
  t.same(retries, [])
})

t.test('100,000 invalidations are stored at once, and another one is rejected until one has expired', async (t) => {
  const { engine, clock } = coreRelay()
  const invalidations = new TokenInvalidations({
    broker: engine,
    history: engine,
    nowMs: () => clock.nowMs,
    setTimer: () => () => undefined,
    log: { info: () => undefined, error: () => undefined },
    options: () => ({ ttlMs: 60_000 })
  })
  const add = (user: string, expiresAt: number): void =>
    invalidations.add({ user, channel: '', issuedBefore: 1, expiresAt })
  add('short', clock.nowMs)
  for (let n = 2; n < 100_000; n++) add(`user-${n}`, clock.nowMs + 60_000)

  t.match(await invalidations.store('ada', '', 1), { user: 'ada' })
  add('ada', clock.nowMs + 60_000)
  t.equal(await invalidations.store('bob', '', 1), ERROR_LIMIT_EXCEEDED)
  clock.nowMs += 1
  t.match(await invalidations.store('bob', '', 1), { user: 'bob' })
})
