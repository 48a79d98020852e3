import t from 'tap'
import { Session } from '../../../src/client/session/session.js'
import type { SessionState } from '../../../src/client/session/session-state.js'
import { cookieJar } from '../../helper/cookie-jar.js'
import { FakeClock } from '../../helper/fake-clock.js'

const HOUR_MS = 3_600_000

const setUp = (fetchUser: () => Promise<unknown> = async () => ({ data: { permissions: ['from.backend'] } })) => {
  const jar = cookieJar()
  const clock = new FakeClock()
  let requestCount = 0
  const session = new Session({
    cookies: () => jar.readable,
    nowMs: () => clock.now(),
    fetchUser: () => {
      requestCount += 1
      return fetchUser()
    }
  })
  const changes: SessionState[] = []
  session.onChange((state) => void changes.push(state))
  const signIn = (name: string, permissions?: readonly string[]): void => {
    jar.set('auth_user', JSON.stringify({ userId: name, email: null, displayName: name, role: null }))
    jar.set('auth_token_expiry', String(clock.now() + HOUR_MS))
    if (permissions === undefined) jar.delete('auth_permissions')
    else jar.set('auth_permissions', JSON.stringify(permissions))
  }
  const signOut = (): void => {
    for (const name of ['auth_user', 'auth_token_expiry', 'auth_permissions']) jar.delete(name)
  }
  return {
    jar,
    clock,
    session,
    changes,
    signIn,
    signOut,
    get requestCount() {
      return requestCount
    }
  }
}

t.test('a session', async (t) => {
  t.test('a session reports a sign-in once, and a sign-out', async (t) => {
    const { session, changes, signIn, signOut } = setUp()
    signIn('ada', ['a.b'])
    session.refresh()
    session.refresh()
    signOut()
    session.refresh()

    t.match(changes, [
      { isSignedIn: true, user: { userId: 'ada' } },
      { isSignedIn: false, user: null }
    ])
    t.equal(changes.length, 2)
  })

  t.test('the state stays the same object while other cookies change', async (t) => {
    const { session, jar, signIn } = setUp()
    signIn('ada', [])
    const state = session.refresh()
    jar.set('csrf_token', 'x')

    t.equal(session.refresh(), state)
    t.equal(session.state, state)
  })

  t.test('a session ends at its expiry even if the cookies remain', async (t) => {
    const { session, clock, changes, signIn } = setUp()
    signIn('ada', [])
    session.refresh()
    clock.advance(HOUR_MS)

    t.equal(session.refresh().isSignedIn, false)
    t.equal(session.refresh(), session.state)
    t.equal(changes.length, 2)
  })

  t.test('an ended session stays ended until its cookies change or a user signs in', async (t) => {
    const { session, changes, clock, signIn } = setUp()
    signIn('ada', [])
    session.refresh()
    session.end()
    session.end()
    t.equal(session.refresh().isSignedIn, false)
    t.equal(session.begin().isSignedIn, true, 'with the very same cookies')
    session.end()
    clock.advance(1000)
    signIn('ada', [])
    t.equal(session.refresh().isSignedIn, true)

    t.same(
      changes.map(({ isSignedIn }) => isSignedIn),
      [true, false, true, false, true]
    )
  })

  t.test('removed listeners are not called', async (t) => {
    const { session, signIn } = setUp()
    let calls = 0
    const leave = session.onChange(() => {
      calls += 1
    })
    leave()
    signIn('ada', [])
    session.refresh()

    t.equal(calls, 0)
  })
})

t.test('the permissions of a session', async (t) => {
  t.test('permissions in the cookie need no request', async (t) => {
    const context = setUp()
    context.signIn('ada', ['a.b'])

    t.same((await context.session.complete()).permissions, ['a.b'])
    t.equal(context.requestCount, 0)
  })

  t.test('without a session there are no permissions and no request', async (t) => {
    const context = setUp()
    t.same((await context.session.complete()).permissions, [])
    t.equal(context.requestCount, 0)
  })

  t.test('missing permissions are requested once for all callers', async (t) => {
    const context = setUp()
    context.signIn('ada')
    const [one, other] = await Promise.all([context.session.complete(), context.session.complete()])
    await context.session.complete()

    t.same(one.permissions, ['from.backend'])
    t.equal(one, other)
    t.equal(context.requestCount, 1)
    t.equal(context.session.state, one)
    t.same(
      context.changes.map(({ permissions }) => permissions),
      [null, ['from.backend']]
    )
  })

  t.test('there are no permissions if the response has none', async (t) => {
    const context = setUp(async () => ({ success: true }))
    context.signIn('ada')
    t.same((await context.session.complete()).permissions, [])
  })

  t.test('permissions are requested again after an error', async (t) => {
    let fails = true
    const context = setUp(async () => {
      if (fails) throw new Error('no network')
      return { data: { permissions: ['a.b'] } }
    })
    context.signIn('ada')
    await t.rejects(context.session.complete(), { message: 'no network' })
    t.equal(context.session.state.permissions, null)

    fails = false
    t.same((await context.session.complete()).permissions, ['a.b'])
  })

  t.test('permissions of a previous user are discarded', async (t) => {
    const responses = [['of.ada'], ['of.bob']].map((permissions) => ({ data: { permissions } }))
    const context: ReturnType<typeof setUp> = setUp(async () => {
      const response = responses.shift()
      if (responses.length === 1) context.signIn('bob')
      return response
    })
    context.signIn('ada')

    t.match(await context.session.complete(), { user: { userId: 'bob' }, permissions: ['of.bob'] })
    t.equal(context.requestCount, 2)
  })
})
