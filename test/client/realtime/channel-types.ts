// Not run: the type check of the tests fails if a line that must not compile does, or the other way round.
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { createBuildingClient } from '../../../src/client/buildings/building-client.js'
import { type AnyClient, createApiClient, createClient, defineChannels, typeOnly } from '../../../src/client/index.js'

interface Alert {
  readonly level: 'low' | 'high'
}

/** As Zod, Valibot and ArkType declare a schema. */
declare const standardSchema: {
  readonly '~standard': {
    readonly version: 1
    validate(
      value: unknown
    ): { readonly value: { done: boolean } } | { readonly issues: readonly { message: string }[] }
    readonly types?: { readonly input: { done: boolean }; readonly output: { done: boolean } } | undefined
  }
}

const channels = defineChannels(
  {
    'orders:*': Type.Object({ total: Type.Number(), note: Type.Optional(Type.String()) }),
    'orders:special': Type.Object({ special: Type.Literal(true) }),
    'shops:*:tasks': standardSchema,
    'alerts:all': typeOnly<Alert>()
  },
  { check: Value.Check }
)

const { realtime, map } = createClient({ realtime: { channels } })

export const declared = (id: number): void => {
  const orders = realtime.subscribe('orders:42')
  orders.on('publication', ({ data }) => {
    data.total.toFixed()
    data.note?.trim()
    // @ts-expect-error: the note is optional
    data.note.trim()
    // @ts-expect-error: an order has no size
    data.size
  })
  void orders.publish({ total: 7 })
  // @ts-expect-error: the total is a number
  void orders.publish({ total: '7' })
  const total: number | undefined = orders.latest?.data.total
  void total

  realtime.subscribe(`orders:${id}`).on('publication', ({ data }) => data.total.toFixed())
  realtime.subscribe('alerts:all').on('publication', ({ data }) => data.level === 'high')
  realtime.subscribe('shops:1:tasks').on('publication', ({ data }) => data.done === true)
  // Both patterns match.
  realtime.subscribe('orders:special').on('publication', ({ data }) => 'special' in data || data.total.toFixed())
  // @ts-expect-error: not declared, so the data is unknown
  realtime.subscribe('shops:1').on('publication', ({ data }) => data.done)
  // @ts-expect-error: the caller must narrow the type of a channel that is not known at compile time
  realtime.subscribe(String(id)).on('publication', ({ data }) => data.total)
  void realtime.publish('orders:42', { total: 1 })
  // @ts-expect-error: an order has a total
  void realtime.publish('orders:42', {})
  void realtime.publish('other:1', 'anything')
  map('orders:all').get('42')?.total.toFixed()
}

export const iterated = async (): Promise<void> => {
  for await (const { data, channel } of realtime.subscribe('orders:42')) channel.concat(data.total.toFixed())
  const { publications, offset, epoch } = await realtime.history('orders:42', { limit: 10 })
  publications[0]?.data.total.toFixed()
  realtime.subscribe('orders:42', { recover: { offset, epoch } })
  // @ts-expect-error: a position has an epoch
  realtime.subscribe('orders:42', { recover: { offset } })
  // @ts-expect-error: `maxrate` is misspelled
  realtime.subscribe('orders:42', { maxrate: 2 })
  // @ts-expect-error: there is no such event
  realtime.subscribe('orders:42').on('publicaton', () => undefined)
}

export const asserted = (): void => {
  const { realtime, api } = createClient()
  realtime.subscribe<Alert>('alerts:1').on('publication', ({ data }) => data.level === 'low')
  realtime.subscribe<string>('texts:1').on('publication', ({ data }) => data.trim())
  // @ts-expect-error: unknown without a declaration
  realtime.subscribe('alerts:1').on('publication', ({ data }) => data.level)
  void realtime.rpc<{ affected: number }>('alerts.acknowledge').then(({ affected }) => affected.toFixed())
  void api<Alert>('GET', '/api/alerts/1').then(({ level }) => level === 'low')
}

export const routes = (): void => {
  const client = createClient({
    routes: (call) => ({ order: (id: number) => call<Alert>('GET', `/api/orders/${id}`) })
  })
  void client.api.order(7).then(({ level }) => level)
  // @ts-expect-error: there is no such function
  client.api.orders
  // @ts-expect-error: a client without realtime
  createApiClient().realtime
  const building = createBuildingClient({ realtime: { channels } })
  building.realtime.subscribe('orders:1').on('publication', ({ data }) => data.total.toFixed())
}

/** For code that does not need the types of channels. */
export const any = (): void => {
  const take = (_client: AnyClient): void => undefined
  const plain = createClient()
  const typed = createClient({ realtime: { channels } })
  const building = createBuildingClient({ realtime: { channels } })
  take(plain)
  take(typed)
  take(building)
}
