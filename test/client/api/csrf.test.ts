import t from 'tap'
import type { ApiOptions } from '../../../src/client/api/api.js'
import type { Teardown } from '../../helper/child.js'
import { type ClientPage, openPage } from '../../helper/client-page.js'
import type { TestGatewayOptions } from '../../helper/gateway.js'
import { TestXhr } from '../../helper/xhr.js'

interface Watched extends ClientPage {
  /** What left the page, as `GET /api/zones`, in order. */
  readonly sent: string[]
}

/** A page whose requests are written down, also those that never reach the backend. */
const openWatched = async (t: Teardown, options: TestGatewayOptions = {}): Promise<Watched> => {
  const sent: string[] = []
  const parts: { page?: ClientPage } = {}
  const watching: ApiOptions = {
    fetch: (input, init) => {
      sent.push(`${init?.method} ${new URL(String(input)).pathname}`)
      return (parts.page as ClientPage).jar.fetch(input, init)
    },
    cookies: () => (parts.page as ClientPage).jar.readable,
    newXhr: () => {
      sent.push('upload')
      return new TestXhr((parts.page as ClientPage).jar)
    }
  }
  parts.page = await openPage(t, options, watching)
  return { ...parts.page, sent }
}

const ASK = 'GET /api/auth/csrf-token'

t.test('a mutation in production', async (t) => {
  t.test('gets itself a token when there is none, and keeps it for the next', async (t) => {
    const { api, sent, backend } = await openWatched(t)
    await api.zones.create({ name: 'Lobby' })
    await api.zones.update(7, { name: 'Hall' })

    t.same(sent, [ASK, 'POST /api/zones', 'PUT /api/zones/7'])
    t.same(
      backend.requests.map(({ body }) => body),
      ['{"name":"Lobby"}', '{"name":"Hall"}']
    )
  })

  t.test('shares the asking with others that leave at the same time', async (t) => {
    const { api, sent } = await openWatched(t)
    await Promise.all([1, 2, 3].map((id) => api.zones.delete(id)))

    t.equal(sent.filter((request) => request === ASK).length, 1)
  })

  t.test('takes the token that another tab was given since', async (t) => {
    const { api, sent, jar } = await openWatched(t)
    await api.zones.delete(1)
    jar.set('csrf_token', "another tab's")
    await api.zones.delete(2)

    t.same(sent, [ASK, 'DELETE /api/zones/1', 'DELETE /api/zones/2'])
  })

  t.test('is sent once more with a new token when its own is refused', async (t) => {
    const { api, sent, jar, backend } = await openWatched(t, { env: { CSRF_MODE: 'signed' } })
    jar.set('csrf_token', 'never issued')
    await api.zones.create({ name: 'Lobby' })

    t.same(sent, ['POST /api/zones', ASK, 'POST /api/zones'])
    t.equal(backend.requests.length, 1)
  })

  t.test('is not sent a third time', async (t) => {
    const { api, sent, jar } = await openWatched(t, { env: { CSRF_MODE: 'signed' } })
    jar.set('csrf_token', 'never issued')
    // A neighbouring host planted a second cookie of that name, so that no pair is ever good.
    Object.defineProperty(jar, 'header', { get: () => 'csrf_token=planted; csrf_token=another' })

    await t.rejects(api.zones.create({ name: 'Lobby' }), { code: 'CSRF_MISMATCH', status: 403 })
    t.same(sent, ['POST /api/zones', ASK, 'POST /api/zones'])
  })

  t.test('that is an upload does the same', async (t) => {
    const { api, sent, jar, backend } = await openWatched(t, { env: { CSRF_MODE: 'signed' } })
    jar.set('csrf_token', 'never issued')
    await api.floors.upload(7, new Blob(['a plan']))

    t.same(sent, ['upload', ASK, 'upload'])
    t.equal(backend.requests.length, 1)
  })

  t.test('that is refused for another reason is not sent again', async (t) => {
    const { api, sent, jar } = await openWatched(t)
    jar.delete('auth_token')
    await t.rejects(api.zones.create({ name: 'Lobby' }), { code: 'UNAUTHENTICATED', status: 401 })

    t.same(sent, [ASK, 'POST /api/zones'])
  })

  t.test('fails as the asking fails', async (t) => {
    const { api, gateway } = await openWatched(t)
    await gateway.app.close()
    await t.rejects(api.zones.create({ name: 'Lobby' }), { code: 'NETWORK_FAILED', status: 0 })
  })
})

t.test('a read carries no token and asks for none', async (t) => {
  const { api, sent } = await openWatched(t)
  await api.zones.list()
  await api.personnel.export.csv()

  t.same(sent, ['GET /api/zones', 'GET /api/personnel/export/csv'])
})
