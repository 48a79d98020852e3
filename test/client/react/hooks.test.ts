import { Type } from '@sinclair/typebox'
import { createElement, type FunctionComponent, type ReactNode, StrictMode } from 'react'
import t, { type Test } from 'tap'
import { type Client, createClient, defineChannels } from '../../../src/client/index.js'
import * as hooks from '../../../src/client/react/index.js'
import { createFakeGateway, type FakeGateway, type FakeGatewayOptions } from '../../../src/client/testing/index.js'
import { installDom } from '../../helper/component-dom.js'
import { eventually } from '../../helper/eventually.js'

const ADA = { userId: 'u-1', displayName: 'Ada' }
const BOB = { userId: 'u-2', displayName: 'Bob' }

const { document } = installDom(t)
const { createRoot } = await import('react-dom/client')
const { flushSync } = await import('react-dom')

interface Mounted {
  readonly gateway: FakeGateway
  readonly client: Client
  /** The text of the page. */
  text(): string
  shows(text: string): Promise<unknown>
  render(children: ReactNode): void
  unmount(): void
}

/** Renders in StrictMode, which mounts, unmounts and mounts every component. */
const mount = async (
  t: Test,
  element: ReactNode,
  options: FakeGatewayOptions = { user: ADA, connInfo: ({ displayName }) => ({ name: displayName }) }
): Promise<Mounted> => {
  const gateway = createFakeGateway(options)
  const client = createClient(gateway.options)
  const container = document.createElement('div')
  const root = createRoot(container)
  const render = (children: ReactNode): void =>
    flushSync(() =>
      root.render(createElement(StrictMode, null, createElement(hooks.GatehouseProvider, { client, children })))
    )
  const unmount = (): void => flushSync(() => root.unmount())
  t.teardown(() => {
    unmount()
    client.close()
  })
  render(element)
  const text = (): string => container.textContent ?? ''
  const shows = (expected: string): Promise<unknown> =>
    eventually(() => text() === expected, { label: `the page shows "${expected}"` })
  return { gateway, client, text, shows, render, unmount }
}

const Order: FunctionComponent<{
  readonly channel: string | null
  readonly onPublication?: (publication: { readonly data: { readonly packed: number } }) => void
}> = ({ channel, onPublication }) => {
  const { data, state, error } = hooks.useSubscription<{ packed: number }>(channel, { onPublication })
  return `${state} ${data?.packed ?? '-'} ${error?.message ?? ''}`.trim()
}

t.test('a component in StrictMode has one subscription, and releases it when it is unmounted', async (t) => {
  const { gateway, shows, unmount } = await mount(t, createElement(Order, { channel: 'orders:42' }))
  await shows('subscribed -')
  t.equal(gateway.subscribers('orders:42'), 1)
  gateway.publish('orders:42', { packed: 1 })
  await shows('subscribed 1')

  unmount()
  await eventually(() => gateway.subscribers('orders:42') === 0)
  t.equal(gateway.connections, 1, 'the connection stays for other components')
})

t.test('a component that changes its channel shows nothing of the previous one', async (t) => {
  const { gateway, shows, render, text } = await mount(t, createElement(Order, { channel: 'orders:42' }))
  await shows('subscribed -')
  gateway.publish('orders:42', { packed: 7 })
  await shows('subscribed 7')

  render(createElement(Order, { channel: 'orders:43' }))
  t.notMatch(text(), '7')
  await shows('subscribed -')
  t.same([gateway.subscribers('orders:42'), gateway.subscribers('orders:43')], [0, 1])
  gateway.publish('orders:42', { packed: 8 })
  gateway.publish('orders:43', { packed: 2 })
  await shows('subscribed 2')

  render(createElement(Order, { channel: null }))
  await shows('unsubscribed -')
  t.equal(gateway.subscribers('orders:43'), 0)
})

t.test('onPublication receives every publication, by the function of the last render', async (t) => {
  const received: string[] = []
  const listener =
    (name: string) =>
    ({ data }: { readonly data: { readonly packed: number } }): void =>
      void received.push(`${name}${data.packed}`)
  const order = (name: string) => createElement(Order, { channel: 'orders:42', onPublication: listener(name) })
  const { gateway, shows, render } = await mount(t, order('a'))
  await shows('subscribed -')
  for (const packed of [1, 2]) gateway.publish('orders:42', { packed })
  await shows('subscribed 2')
  render(order('b'))
  gateway.publish('orders:42', { packed: 3 })
  await shows('subscribed 3')
  t.same(received, ['a1', 'a2', 'b3'])
})

t.test('a rejected subscription shows its error', async (t) => {
  const channels = { 'orders:*': { subscribe: () => false } }
  const { shows } = await mount(t, createElement(Order, { channel: 'orders:42' }), { user: ADA, channels })
  await shows('unsubscribed - permission denied')
})

t.test(
  'components of one channel share one subscription, and the second starts with the newest publication',
  async (t) => {
    const Both: FunctionComponent<{ readonly isSecondShown: boolean }> = ({ isSecondShown }) => [
      createElement(Order, { key: 1, channel: 'orders:42' }),
      isSecondShown && createElement('i', { key: 2 }, '|', createElement(Order, { channel: 'orders:42' }))
    ]
    const { gateway, shows, render } = await mount(t, createElement(Both, { isSecondShown: false }))
    await shows('subscribed -')
    gateway.publish('orders:42', { packed: 5 })
    await shows('subscribed 5')
    render(createElement(Both, { isSecondShown: true }))
    await shows('subscribed 5|subscribed 5')
    t.equal(gateway.subscribers('orders:42'), 1)
    render(createElement(Both, { isSecondShown: false }))
    gateway.publish('orders:42', { packed: 6 })
    await shows('subscribed 6')
  }
)

t.test('usePresence follows who is subscribed, beside a subscription to the same channel', async (t) => {
  const Watchers: FunctionComponent = () => {
    const { clients, isLoading } = hooks.usePresence('orders:42')
    const { state } = hooks.useSubscription('orders:42')
    return isLoading ? 'loading' : `${state} ${clients.map(({ user }) => user).join(' ')}`
  }
  const { gateway, shows } = await mount(t, createElement(Watchers))
  await shows('subscribed u-1')
  const leave = gateway.join('orders:42', BOB)
  await shows('subscribed u-1 u-2')
  gateway.disconnect()
  await shows('subscribed u-2 u-1')
  leave()
  await shows('subscribed u-1')
})

const Carts: FunctionComponent<{ readonly id: number; readonly onReload?: (reload: () => void) => void }> = ({
  id,
  onReload
}) => {
  const { data, error, isLoading, reload } = hooks.useCall<{ name: string }>('GET', `/api/carts/${id}`)
  onReload?.(reload)
  return `${isLoading ? 'loading' : 'loaded'} ${data?.name ?? '-'} ${error?.message ?? ''}`.trim()
}

t.test('useCall loads, shows errors and keeps the data while it reloads', async (t) => {
  let name = 'Linen'
  let reload = (): void => undefined
  const routes = {
    'GET /api/carts/:id': () => (name === '' ? Response.json({ message: 'gone' }, { status: 410 }) : { name })
  }
  const onReload = (given: () => void): void => {
    reload = given
  }
  const element = createElement(Carts, { id: 1, onReload })
  const { gateway, shows, text } = await mount(t, element, { user: ADA, routes })
  await shows('loaded Linen')
  name = 'Meals'
  flushSync(() => reload())
  t.equal(text(), 'loading Linen')
  await shows('loaded Meals')
  name = ''
  reload()
  await shows('loaded Meals gone')
  t.ok(gateway.requests.length >= 3)
})

t.test('useCall aborts the request of an earlier path and of an unmounted component', async (t) => {
  const held = new Map<string, (value: unknown) => void>()
  const signals: (AbortSignal | null | undefined)[] = []
  const gateway = createFakeGateway({
    user: ADA,
    routes: { 'GET /api/carts/:id': ({ params }) => new Promise((resolve) => held.set(String(params.id), resolve)) }
  })
  const client = createClient({
    ...gateway.options,
    fetch: (input, init) => {
      signals.push(init?.signal)
      return gateway.fetch(input, init)
    }
  })
  const root = createRoot(document.createElement('div'))
  const texts: string[] = []
  const Shown: FunctionComponent<{ readonly id: number }> = ({ id }) => {
    const { data } = hooks.useCall<{ name: string }>('GET', `/api/carts/${id}`)
    texts.push(data?.name ?? '-')
    return null
  }
  const render = (id: number): void =>
    flushSync(() => root.render(createElement(hooks.GatehouseProvider, { client }, createElement(Shown, { id }))))
  render(1)
  render(2)
  t.same(
    signals.map((signal) => signal?.aborted),
    [true, false]
  )
  held.get('2')?.({ name: 'second' })
  held.get('1')?.({ name: 'first' })
  await eventually(() => texts.at(-1) === 'second')
  t.notOk(texts.includes('first'))
  render(3)
  flushSync(() => root.unmount())
  t.same(
    signals.map((signal) => signal?.aborted),
    [true, true, true]
  )
  client.close()
})

t.test('a sign-in as another user drops the data and requests it again', async (t) => {
  const routes = {
    'GET /api/carts/:id': ({ user }: { user: unknown }) => ({ name: Object(user ?? {}).displayName ?? 'nobody' })
  }
  const Name: FunctionComponent = () => `${hooks.useSession().user?.displayName ?? 'signed out'}: ${Carts({ id: 1 })}`
  const { gateway, client, shows } = await mount(t, createElement(Name), { user: ADA, routes })
  await shows('Ada: loaded Ada')
  gateway.signIn(BOB)
  client.session.refresh()
  await shows('Bob: loaded Bob')
  await client.signOut()
  await shows('signed out: loaded nobody')
})

t.test('useCall with a function calls it again when a dependency changes, and not for null', async (t) => {
  const calls: number[] = []
  const Sum: FunctionComponent<{ readonly id: number | null }> = ({ id }) => {
    const request = async (): Promise<number> => calls.push(id ?? -1)
    const { data, isLoading } = hooks.useCall(id === null ? null : request, [id])
    return `${isLoading} ${data}`
  }
  const { shows, render } = await mount(t, createElement(Sum, { id: null }))
  await shows('false null')
  t.same(calls, [])
  render(createElement(Sum, { id: 1 }))
  await shows(`false ${calls.length}`)
  const before = calls.length
  render(createElement(Sum, { id: 1 }))
  t.equal(calls.length, before)
  render(createElement(Sum, { id: 2 }))
  t.equal(calls.at(-1), 2)
})

t.test('useConnectionState follows the connection', async (t) => {
  const State: FunctionComponent = () => `${hooks.useConnectionState()} ${Order({ channel: 'orders:42' })}`
  const { shows, gateway } = await mount(t, createElement(State))
  await shows('online subscribed -')
  gateway.close()
  await shows('offline subscribing -')
})

t.test('a hook outside a GatehouseProvider says what is missing', async (t) => {
  const errors: unknown[] = []
  const root = createRoot(document.createElement('div'), { onUncaughtError: (error) => errors.push(error) })
  flushSync(() => root.render(createElement(Order, { channel: 'orders:42' })))
  t.match(errors, [{ message: /must be inside a GatehouseProvider/ }])
})

t.test('a component below a client with typed channels receives their publications', async (t) => {
  const gateway = createFakeGateway({ user: ADA })
  const channels = defineChannels({ 'orders:*': Type.Object({ packed: Type.Number() }) })
  const client = createClient({ ...gateway.options, realtime: { ...gateway.options.realtime, channels } })
  const container = document.createElement('div')
  const root = createRoot(container)
  t.teardown(() => {
    flushSync(() => root.unmount())
    client.close()
  })
  const order = createElement(Order, { channel: 'orders:42' })
  flushSync(() => root.render(createElement(hooks.GatehouseProvider, { client }, order)))
  await eventually(() => gateway.subscribers('orders:42') === 1)
  gateway.publish('orders:42', { packed: 4 })
  await eventually(() => container.textContent === 'subscribed 4')
})
