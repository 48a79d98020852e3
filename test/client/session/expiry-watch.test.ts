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
  t.test('is announced five minutes before, and told when it is there, once each', async (t) => {
    const { clock, calls, session } = setUp()
    clock.pass(55 * MINUTE_MS - 1)
    t.same(calls, [])
    clock.pass(1)
    t.same(calls, ['expiring in 5 min'])
    clock.pass(5 * MINUTE_MS - 1)
    t.equal(calls.length, 1)
    clock.pass(1)
    t.same(calls, ['expiring in 5 min', 'expired, signed in: false'])
    t.equal(session.state.isSignedIn, false)
    clock.pass(600 * MINUTE_MS)
    t.equal(calls.length, 2)
    t.equal(clock.waiting, 0, 'nothing waits any more')
  })

  t.test('is announced at once where little is left', async (t) => {
    const { calls } = setUp(2 * MINUTE_MS)
    t.same(calls, ['expiring in 2 min'])
  })

  t.test('is noticed by a computer that slept through it', async (t) => {
    const { clock, calls } = setUp()
    clock.pass(MINUTE_MS)
    clock.sleep(600 * MINUTE_MS)
    t.same(calls, [])
    clock.pass(MINUTE_MS)
    t.same(calls, ['expired, signed in: false'])
  })

  t.test('is as far away as the newest session says', async (t) => {
    const { clock, calls, session, signIn } = setUp(10 * MINUTE_MS)
    clock.pass(6 * MINUTE_MS)
    signIn(60 * MINUTE_MS)
    session.refresh()
    clock.pass(54 * MINUTE_MS)
    t.same(calls, ['expiring in 5 min'])
    clock.pass(MINUTE_MS)
    t.same(calls, ['expiring in 5 min', 'expiring in 5 min'])
  })

  t.test('is as far away as another tab has made it, though nobody looked since', async (t) => {
    const { clock, calls, signIn } = setUp(10 * MINUTE_MS)
    clock.pass(MINUTE_MS)
    signIn(60 * MINUTE_MS)
    clock.pass(54 * MINUTE_MS)
    t.same(calls, [])
    clock.pass(6 * MINUTE_MS)
    t.same(calls, ['expiring in 5 min', 'expired, signed in: false'])
  })

  t.test('is not told to somebody who signed out in another tab', async (t) => {
    const { clock, calls, jar, session } = setUp()
    jar.delete('auth_token_expiry')
    clock.pass(MINUTE_MS)

    t.equal(session.state.isSignedIn, false)
    clock.pass(120 * MINUTE_MS)
    t.same(calls, [])
    t.equal(clock.waiting, 0)
  })

  t.test('is not told to somebody who signed out', async (t) => {
    const { clock, calls, jar, session } = setUp()
    jar.delete('auth_token_expiry')
    session.refresh()
    clock.pass(120 * MINUTE_MS)

    t.same(calls, [])
    t.equal(clock.waiting, 0)
  })

  t.test('is told when the browser drops the cookie a moment early', async (t) => {
    const { clock, calls, jar, session } = setUp(MINUTE_MS)
    clock.pass(MINUTE_MS - 900)
    jar.delete('auth_token_expiry')
    session.refresh()

    t.same(calls.slice(1), ['expired, signed in: false'])
  })

  t.test('is when the gateway says so, if the clock of the page is behind', async (t) => {
    const { clock, calls, watch, session } = setUp()
    watch.expireNow()
    watch.expireNow()
    session.refresh()
    t.equal(session.state.isSignedIn, false, 'though its cookies are still there')
    clock.pass(120 * MINUTE_MS)

    t.same(calls, ['expired, signed in: false'])
  })

  t.test('is watched from the sign-in on, where nobody was signed in', async (t) => {
    const { clock, calls, session, signIn } = setUp(null)
    clock.pass(MINUTE_MS)
    signIn(4 * MINUTE_MS)
    session.refresh()
    clock.pass(4 * MINUTE_MS)

    t.same(calls, ['expiring in 4 min', 'expired, signed in: false'])
  })

  t.test('is of no interest to a watch that was stopped', async (t) => {
    const { clock, calls, session, watch, signIn } = setUp()
    watch.stop()
    signIn(MINUTE_MS)
    session.refresh()
    clock.pass(120 * MINUTE_MS)

    t.same(calls, [])
    t.equal(clock.waiting, 0)
  })

  t.test('may be years away', async (t) => {
    const { clock, calls } = setUp(3 * 365 * 24 * 60 * MINUTE_MS)
    clock.pass(60 * MINUTE_MS)
    t.same(calls, [])
  })
})
