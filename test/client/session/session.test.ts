import t from 'tap'
import { Session } from '../../../src/client/session/session.js'
import type { SessionState } from '../../../src/client/session/session-state.js'
import { cookieJar } from '../../helper/cookie-jar.js'
import { FakeClock } from '../../helper/fake-clock.js'

const HOUR_MS = 3_600_000

const setUp = (fetchUser: () => Promise<unknown> = async () => ({ data: { permissions: ['from.backend'] } })) => {
  const jar = cookieJar()
  const clock = new FakeClock()
  let asked = 0
  const session = new Session({
    cookies: () => jar.readable,
    nowMs: () => clock.now(),
    fetchUser: () => {
      asked += 1
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
    get asked() {
      return asked
    }
  }
}

t.test('a session', async (t) => {
  t.test('tells of a sign-in, once, and of a sign-out', async (t) => {
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

  t.test('is the same object while other cookies change', async (t) => {
    const { session, jar, signIn } = setUp()
    signIn('ada', [])
    const state = session.refresh()
    jar.set('csrf_token', 'x')

    t.equal(session.refresh(), state)
    t.equal(session.state, state)
  })

  t.test('ends when its time is over, whether or not the browser dropped its cookies', async (t) => {
    const { session, clock, changes, signIn } = setUp()
    signIn('ada', [])
    session.refresh()
    clock.pass(HOUR_MS)

    t.equal(session.refresh().isSignedIn, false)
    t.equal(session.refresh(), session.state)
    t.equal(changes.length, 2)
  })

  t.test('is over when it is ended, until its cookies change or somebody signs in', async (t) => {
    const { session, changes, clock, signIn } = setUp()
    signIn('ada', [])
    session.refresh()
    session.end()
    session.end()
    t.equal(session.refresh().isSignedIn, false)
    t.equal(session.begin().isSignedIn, true, 'with the very same cookies')
    session.end()
    clock.pass(1000)
    signIn('ada', [])
    t.equal(session.refresh().isSignedIn, true)

    t.same(
      changes.map(({ isSignedIn }) => isSignedIn),
      [true, false, true, false, true]
    )
  })

  t.test('tells nobody who has left', async (t) => {
    const { session, signIn } = setUp()
    let told = 0
    const leave = session.onChange(() => {
      told += 1
    })
    leave()
    signIn('ada', [])
    session.refresh()

    t.equal(told, 0)
  })
})

t.test('the permissions of a session', async (t) => {
  t.test('are those of the cookie, without a question', async (t) => {
    const context = setUp()
    context.signIn('ada', ['a.b'])

    t.same((await context.session.complete()).permissions, ['a.b'])
    t.equal(context.asked, 0)
  })

  t.test('are none for somebody who is not signed in, without a question', async (t) => {
    const context = setUp()
    t.same((await context.session.complete()).permissions, [])
    t.equal(context.asked, 0)
  })

  t.test('are asked of the backend where the cookie has none, once for all who wait', async (t) => {
    const context = setUp()
    context.signIn('ada')
    const [one, other] = await Promise.all([context.session.complete(), context.session.complete()])
    await context.session.complete()

    t.same(one.permissions, ['from.backend'])
    t.equal(one, other)
    t.equal(context.asked, 1)
    t.equal(context.session.state, one)
    t.same(
      context.changes.map(({ permissions }) => permissions),
      [null, ['from.backend']]
    )
  })

  t.test('are none where the backend does not say', async (t) => {
    const context = setUp(async () => ({ success: true }))
    context.signIn('ada')
    t.same((await context.session.complete()).permissions, [])
  })

  t.test('are asked for again after a failure', async (t) => {
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

  t.test('are never those of somebody who was signed in before', async (t) => {
    const answers = [['of.ada'], ['of.bob']].map((permissions) => ({ data: { permissions } }))
    const context: ReturnType<typeof setUp> = setUp(async () => {
      const answer = answers.shift()
      if (answers.length === 1) context.signIn('bob')
      return answer
    })
    context.signIn('ada')

    t.match(await context.session.complete(), { user: { userId: 'bob' }, permissions: ['of.bob'] })
    t.equal(context.asked, 2)
  })
})
