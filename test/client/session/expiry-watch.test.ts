import t from 'tap'
import { watchExpiry } from '../../../src/client/session/expiry-watch.js'
import { Session } from '../../../src/client/session/session.js'
import { cookieJar } from '../../helper/cookie-jar.js'
import { FakeClock } from '../../helper/fake-clock.js'

const MINUTE_MS = 60_000

const setUp = (lifetimeMs: number | null = 60 * MINUTE_MS) => {
  const jar = cookieJar()
  const clock = new FakeClock()
  const signIn = (ms: number): void => jar.set('auth_token_expiry', String(clock.now() + ms))
  if (lifetimeMs !== null) signIn(lifetimeMs)
  const session = new Session({ cookies: () => jar.readable, nowMs: () => clock.now(), fetchUser: async () => null })
  const calls: string[] = []
  const watch = watchExpiry({
    session,
    clock,
    onExpiring: (leftMs) => void calls.push(`expiring in ${leftMs / MINUTE_MS} min`),
    onExpired: () => void calls.push(`expired, signed in: ${session.state.isSignedIn}`)
  })
  return { jar, clock, session, calls, watch, signIn }
}

t.test('the end of a session', async (t) => {
  t.test('the expiry is announced five minutes before and reported once', async (t) => {
    const { clock, calls, session } = setUp()
    clock.advance(55 * MINUTE_MS - 1)
    t.same(calls, [])
    clock.advance(1)
    t.same(calls, ['expiring in 5 min'])
    clock.advance(5 * MINUTE_MS - 1)
    t.equal(calls.length, 1)
    clock.advance(1)
    t.same(calls, ['expiring in 5 min', 'expired, signed in: false'])
    t.equal(session.state.isSignedIn, false)
    clock.advance(600 * MINUTE_MS)
    t.equal(calls.length, 2)
    t.equal(clock.pendingTimers, 0, 'no timer is left')
  })

  t.test('an expiry within five minutes is announced immediately', async (t) => {
    const { calls } = setUp(2 * MINUTE_MS)
    t.same(calls, ['expiring in 2 min'])
  })

  t.test('an expiry during sleep is reported on wake-up', async (t) => {
    const { clock, calls } = setUp()
    clock.advance(MINUTE_MS)
    clock.sleep(600 * MINUTE_MS)
    t.same(calls, [])
    clock.advance(MINUTE_MS)
    t.same(calls, ['expired, signed in: false'])
  })

  t.test('a new session moves the expiry', async (t) => {
    const { clock, calls, session, signIn } = setUp(10 * MINUTE_MS)
    clock.advance(6 * MINUTE_MS)
    signIn(60 * MINUTE_MS)
    session.refresh()
    clock.advance(54 * MINUTE_MS)
    t.same(calls, ['expiring in 5 min'])
    clock.advance(MINUTE_MS)
    t.same(calls, ['expiring in 5 min', 'expiring in 5 min'])
  })

  t.test('a session renewed in another tab moves the expiry', async (t) => {
    const { clock, calls, signIn } = setUp(10 * MINUTE_MS)
    clock.advance(MINUTE_MS)
    signIn(60 * MINUTE_MS)
    clock.advance(54 * MINUTE_MS)
    t.same(calls, [])
    clock.advance(6 * MINUTE_MS)
    t.same(calls, ['expiring in 5 min', 'expired, signed in: false'])
  })

  t.test('no expiry is reported after a sign-out in another tab', async (t) => {
    const { clock, calls, jar, session } = setUp()
    jar.delete('auth_token_expiry')
    clock.advance(MINUTE_MS)

    t.equal(session.state.isSignedIn, false)
    clock.advance(120 * MINUTE_MS)
    t.same(calls, [])
    t.equal(clock.pendingTimers, 0)
  })

  t.test('no expiry is reported after a sign-out', async (t) => {
    const { clock, calls, jar, session } = setUp()
    jar.delete('auth_token_expiry')
    session.refresh()
    clock.advance(120 * MINUTE_MS)

    t.same(calls, [])
    t.equal(clock.pendingTimers, 0)
  })

  t.test('the expiry is reported if the browser drops the cookie slightly early', async (t) => {
    const { clock, calls, jar, session } = setUp(MINUTE_MS)
    clock.advance(MINUTE_MS - 900)
    jar.delete('auth_token_expiry')
    session.refresh()

    t.same(calls.slice(1), ['expired, signed in: false'])
  })

  t.test('the expiry that the gateway reports overrides a slow page clock', async (t) => {
    const { clock, calls, watch, session } = setUp()
    watch.expireNow()
    watch.expireNow()
    session.refresh()
    t.equal(session.state.isSignedIn, false, 'though its cookies are still there')
    clock.advance(120 * MINUTE_MS)

    t.same(calls, ['expired, signed in: false'])
  })

  t.test('a session that starts later is watched', async (t) => {
    const { clock, calls, session, signIn } = setUp(null)
    clock.advance(MINUTE_MS)
    signIn(4 * MINUTE_MS)
    session.refresh()
    clock.advance(4 * MINUTE_MS)

    t.same(calls, ['expiring in 4 min', 'expired, signed in: false'])
  })

  t.test('a stopped watch reports nothing', async (t) => {
    const { clock, calls, session, watch, signIn } = setUp()
    watch.stop()
    signIn(MINUTE_MS)
    session.refresh()
    clock.advance(120 * MINUTE_MS)

    t.same(calls, [])
    t.equal(clock.pendingTimers, 0)
  })

  t.test('an expiry may be years away', async (t) => {
    const { clock, calls } = setUp(3 * 365 * 24 * 60 * MINUTE_MS)
    clock.advance(60 * MINUTE_MS)
    t.same(calls, [])
  })
})
