import t from 'tap'
import type { CallerOptions } from '../../../src/client/api/caller.js'
import type { Teardown } from '../../helper/child.js'
import { type ClientPage, openPage } from '../../helper/client-page.js'
import type { TestGatewayOptions } from '../../helper/gateway.js'
import { TestXhr } from '../../helper/xhr.js'

interface RecordingPage extends ClientPage {
  /** The requests that were sent, such as `GET /api/zones`, in order. */
  readonly sent: string[]
}

/** A page that records its requests, including those that the gateway handles. */
const openRecordingPage = async (t: Teardown, options: TestGatewayOptions = {}): Promise<RecordingPage> => {
  const sent: string[] = []
  const recording = (jar: ClientPage['jar']): CallerOptions => ({
    fetch: (input, init) => {
      sent.push(`${init?.method} ${new URL(String(input)).pathname}`)
      return jar.fetch(input, init)
    },
    newXhr: () => {
      sent.push('upload')
      return new TestXhr(jar)
    }
  })
  return { ...(await openPage(t, options, recording)), sent }
}

const TOKEN_REQUEST = 'GET /api/auth/csrf-token'

t.test('a write request in production', async (t) => {
  t.test('a write request requests a token if there is none, and the next one reuses it', async (t) => {
    const { api, sent, backend } = await openRecordingPage(t)
    await api.zones.create({ name: 'Lobby' })
    await api.zones.update(7, { name: 'Hall' })

    t.same(sent, [TOKEN_REQUEST, 'POST /api/zones', 'PUT /api/zones/7'])
    t.same(
      backend.requests.map(({ body }) => body),
      ['{"name":"Lobby"}', '{"name":"Hall"}']
    )
  })

  t.test('concurrent write requests share one token request', async (t) => {
    const { api, sent } = await openRecordingPage(t)
    await Promise.all([1, 2, 3].map((id) => api.zones.delete(id)))

    t.equal(sent.filter((request) => request === TOKEN_REQUEST).length, 1)
  })

  t.test('a write request uses the newer token of another tab', async (t) => {
    const { api, sent, jar } = await openRecordingPage(t)
    await api.zones.delete(1)
    jar.set('csrf_token', "another tab's")
    await api.zones.delete(2)

    t.same(sent, [TOKEN_REQUEST, 'DELETE /api/zones/1', 'DELETE /api/zones/2'])
  })

  t.test('a write request is retried once with a new token after a CSRF rejection', async (t) => {
    const { api, sent, jar, backend } = await openRecordingPage(t, { env: { CSRF_MODE: 'signed' } })
    jar.set('csrf_token', 'never issued')
    await api.zones.create({ name: 'Lobby' })

    t.same(sent, ['POST /api/zones', TOKEN_REQUEST, 'POST /api/zones'])
    t.equal(backend.requests.length, 1)
  })

  t.test('a write request is not retried twice', async (t) => {
    const { api, sent, jar } = await openRecordingPage(t, { env: { CSRF_MODE: 'signed' } })
    jar.set('csrf_token', 'never issued')
    // A sibling host has set a second cookie of that name, so no token is accepted.
    Object.defineProperty(jar, 'header', { get: () => 'csrf_token=planted; csrf_token=another' })

    await t.rejects(api.zones.create({ name: 'Lobby' }), { code: 'CSRF_MISMATCH', status: 403 })
    t.same(sent, ['POST /api/zones', TOKEN_REQUEST, 'POST /api/zones'])
  })

  t.test('an upload is retried with a new token', async (t) => {
    const { api, sent, jar, backend } = await openRecordingPage(t, { env: { CSRF_MODE: 'signed' } })
    jar.set('csrf_token', 'never issued')
    await api.floors.upload(7, new Blob(['a plan']), { onProgress: () => undefined })

    t.same(sent, ['upload', TOKEN_REQUEST, 'upload'])
    t.equal(backend.requests.length, 1)
  })

  t.test('a write request is not retried after another error', async (t) => {
    const { api, sent, jar } = await openRecordingPage(t)
    jar.delete('auth_token')
    await t.rejects(api.zones.create({ name: 'Lobby' }), { code: 'UNAUTHENTICATED', status: 401 })

    t.same(sent, [TOKEN_REQUEST, 'POST /api/zones'])
  })

  t.test('a write request fails with the error of the token request', async (t) => {
    const { api, gateway } = await openRecordingPage(t)
    await gateway.app.close()
    await t.rejects(api.zones.create({ name: 'Lobby' }), { code: 'NETWORK_FAILED', status: 0 })
  })
})

t.test('a read neither sends nor requests a token', async (t) => {
  const { api, sent } = await openRecordingPage(t)
  await api.zones.list()
  await api.personnel.export.csv()

  t.same(sent, ['GET /api/zones', 'GET /api/personnel/export/csv'])
})
