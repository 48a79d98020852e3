import t, { type Test } from 'tap'
import {
  createRenderer,
  createSSRApp,
  defineComponent,
  type EffectScope,
  effectScope,
  h,
  nextTick,
  type Ref,
  ref,
  shallowReactive,
  watchEffect
} from 'vue'
import { renderToString } from 'vue/server-renderer'
import { type Client, createClient } from '../../../src/client/index.js'
import { createFakeGateway, type FakeGateway, type FakeGatewayOptions } from '../../../src/client/testing/index.js'
import * as composables from '../../../src/client/vue/index.js'
import { eventually } from '../../helper/eventually.js'

const ADA = { userId: 'u-1', displayName: 'Ada' }
const BOB = { userId: 'u-2', displayName: 'Bob' }

interface TestNode {
  text: string
  children: TestNode[]
}

const nodeOf = (text: string): TestNode => ({ text, children: [] })

/** Renders texts without a document. */
const { createApp } = createRenderer<TestNode, TestNode>({
  createElement: () => nodeOf(''),
  createText: nodeOf,
  createComment: () => nodeOf(''),
  setText: (node, text) => {
    node.text = text
  },
  setElementText: (node, text) => {
    node.text = text
  },
  insert: (node, parent) => void parent.children.push(node),
  remove: () => undefined,
  parentNode: () => null,
  nextSibling: () => null,
  patchProp: () => undefined
})

const start = (t: Test, options: FakeGatewayOptions = { user: ADA }): { gateway: FakeGateway; client: Client } => {
  const gateway = createFakeGateway(options)
  const client = createClient(gateway.options)
  t.teardown(() => client.close())
  return { gateway, client }
}

/** Mounts a component whose text is the result of `show`, which `setup` returns. */
const mount = (t: Test, client: Client, setup: () => () => string) => {
  const app = createApp(defineComponent({ setup: () => setup() }))
  const container = nodeOf('')
  composables.provideClient(client, { app })
  let isMounted = true
  const unmount = (): void => {
    if (isMounted) app.unmount()
    isMounted = false
  }
  t.teardown(unmount)
  app.mount(container)
  const text = (): string => container.children.map(({ text }) => text).join('')
  const shows = (expected: string): Promise<unknown> =>
    eventually(() => text() === expected, { label: `the page shows "${expected}"` })
  return { shows, unmount, text }
}

t.test('a component follows a channel, changes it and releases it', async (t) => {
  const { gateway, client } = start(t)
  const channel: Ref<string | null> = ref('orders:42')
  const received: unknown[] = []
  const { shows, unmount } = mount(t, client, () => {
    const { data, state } = composables.useSubscription<number>(channel, {
      onPublication: ({ data }) => received.push(data)
    })
    return () => `${state.value} ${data.value}`
  })
  await shows('subscribed null')
  gateway.publish('orders:42', 1)
  gateway.publish('orders:42', 2)
  await shows('subscribed 2')
  t.same(received, [1, 2])

  channel.value = 'orders:43'
  await shows('subscribed null')
  t.same([gateway.subscribers('orders:42'), gateway.subscribers('orders:43')], [0, 1])
  channel.value = null
  await shows('unsubscribed null')
  t.equal(gateway.subscribers('orders:43'), 0)
  channel.value = 'orders:44'
  await shows('subscribed null')
  unmount()
  await eventually(() => gateway.subscribers('orders:44') === 0)
})

t.test('options of a subscription may be a getter, and an equal object does not subscribe again', async (t) => {
  const { gateway, client } = start(t)
  const options = shallowReactive({ maxRate: 1 })
  const states: string[] = []
  const { shows } = mount(t, client, () => {
    const { state } = composables.useSubscription('orders:42', () => ({ maxRate: options.maxRate > 1 ? 2 : 1 }))
    watchEffect(() => states.push(state.value), { flush: 'sync' })
    return () => state.value
  })
  await shows('subscribed')
  options.maxRate = 0.5
  await nextTick()
  t.same(states, ['subscribing', 'subscribed'])
  options.maxRate = 2
  await eventually(() => states.length === 4)
  t.same(states.slice(2), ['subscribing', 'subscribed'])
  t.equal(gateway.subscribers('orders:42'), 1)
})

t.test('usePresence and useSubscription of one channel share a subscription', async (t) => {
  const { gateway, client } = start(t)
  const { shows } = mount(t, client, () => {
    const { state } = composables.useSubscription('orders:42')
    const { clients, isLoading } = composables.usePresence(() => 'orders:42')
    return () => `${state.value} ${isLoading.value} ${clients.value.map(({ user }) => user).join(' ')}`
  })
  await shows('subscribed false u-1')
  const leave = gateway.join('orders:42', BOB)
  await shows('subscribed false u-1 u-2')
  leave()
  await shows('subscribed false u-1')
})

t.test('useCall follows a path, keeps the data while it reloads and shows errors', async (t) => {
  let suffix = ''
  const { client } = start(t, {
    user: ADA,
    routes: {
      'GET /api/carts/:id': ({ params }) =>
        params.id === '9' ? Response.json({ message: 'no such cart' }, { status: 404 }) : `cart ${params.id}${suffix}`
    }
  })
  const id = ref(1)
  let reload = (): void => undefined
  const { shows, text } = mount(t, client, () => {
    const call = composables.useCall<string>('GET', () => (id.value === 0 ? null : `/api/carts/${id.value}`))
    reload = call.reload
    return () => `${call.isLoading.value} ${call.data.value} ${call.error.value?.message}`
  })
  await shows('false cart 1 undefined')
  suffix = '!'
  reload()
  await nextTick()
  t.equal(text(), 'true cart 1 undefined')
  await shows('false cart 1! undefined')
  id.value = 9
  await shows('false null no such cart')
  id.value = 0
  await shows('false null undefined')
})

t.test('useCall with a function repeats it when a source changes, and aborts it when the scope ends', async (t) => {
  const { client } = start(t)
  const id = ref(1)
  const signals: AbortSignal[] = []
  const inApp = <Result>(scope: EffectScope, setup: () => Result): Result | undefined => {
    const app = createApp(defineComponent({ render: () => null }))
    composables.provideClient(client, { app })
    return app.runWithContext(() => scope.run(setup))
  }
  const scope = effectScope()
  const call = inApp(scope, () =>
    composables.useCall(
      ({ signal }) => {
        signals.push(signal)
        return id.value === 1 ? new Promise<number>(() => undefined) : Promise.resolve(id.value)
      },
      [id]
    )
  )
  t.same(
    signals.map(({ aborted }) => aborted),
    [false]
  )
  id.value = 2
  await eventually(() => call?.data.value === 2)
  t.same(
    signals.map(({ aborted }) => aborted),
    [true, false]
  )
  id.value = 1
  await nextTick()
  scope.stop()
  t.same(
    signals.map(({ aborted }) => aborted),
    [true, true, true]
  )
})

t.test('useSession and useConnectionState follow the client', async (t) => {
  const { gateway, client } = start(t)
  const { shows } = mount(t, client, () => {
    const { user } = composables.useSession()
    const connection = composables.useConnectionState()
    composables.useSubscription('orders:42')
    return () => `${user.value?.displayName} ${connection.value}`
  })
  await shows('Ada online')
  gateway.signIn(BOB)
  client.session.refresh()
  await shows('Bob online')
  await client.signOut()
  await shows('undefined offline')
})

t.test('a server renders the session and opens nothing, and a page may start with that session', async (t) => {
  const { gateway, client } = start(t)
  const Page = defineComponent({
    setup: () => {
      const { user } = composables.useSession()
      const { state } = composables.useSubscription('orders:42')
      const { isLoading } = composables.useCall('GET', '/api/carts')
      return () => h('p', `${user.value?.displayName} ${state.value} ${isLoading.value}`)
    }
  })
  const render = (options: composables.ProvideClientOptions): Promise<string> => {
    const app = createSSRApp(Page)
    composables.provideClient(client, { ...options, app })
    return renderToString(app)
  }
  t.equal(await render({}), '<p>Ada subscribing true</p>')
  const serverSession = { isSignedIn: false, user: null, permissions: [], expiresAtMs: null }
  t.equal(await render({ serverSession }), '<p>undefined subscribing true</p>')
  t.same([gateway.requests.length, gateway.connections], [0, 0])
})

t.test('a composable without a client says what is missing', async (t) => {
  const app = createApp(defineComponent({ render: () => null }))
  t.throws(() => app.runWithContext(() => composables.useClient()), /call provideClient/)
})
