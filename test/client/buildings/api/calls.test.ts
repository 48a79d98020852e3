import t from 'tap'
import type { Api } from '../../../../src/client/buildings/api/operations.js'
import { openPage } from '../../../helper/client-page.js'

const json = { 'content-type': 'application/json' }

t.test('a call', async (t) => {
  t.test('a call resolves to the JSON response', async (t) => {
    const { api, backend } = await openPage(t)
    backend.respond = (_request, response) => response.writeHead(200, json).end('{"success":true,"data":[{"id":7}]}')

    t.same(await api.zones.list<{ data: { id: number }[] }>(), { success: true, data: [{ id: 7 }] })
  })

  t.test('a call resolves to null for an empty response', async (t) => {
    const { api, backend } = await openPage(t)
    backend.respond = (_request, response) => response.writeHead(204).end()

    t.equal(await api.zones.delete(7), null)
  })

  t.test('a call resolves to text if the response is not JSON', async (t) => {
    const { api, backend } = await openPage(t)
    backend.respond = (_request, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('{"a"')

    t.equal(await api.zones.list(), '{"a"')
  })

  t.test('a call repeats list parameters and omits undefined ones in the query', async (t) => {
    const { api, backend } = await openPage(t)
    await api.zones.list({
      query: { limit: 50, sort: 'näme &', floor: ['f-1', 2], active: true, no: undefined, nil: null }
    })

    t.equal(backend.requests[0]?.url, '/api/zones?limit=50&sort=n%C3%A4me+%26&floor=f-1&floor=2&active=true')
  })

  t.test('a deletion accepts an optional body', async (t) => {
    const { api, backend } = await openPage(t)
    await api.zones.delete(7)
    await api.zones.delete(7, { reason: 'Rebuilt' })

    t.same(
      backend.requests.map(({ body }) => body),
      ['', '{"reason":"Rebuilt"}']
    )
  })

  for (const id of ['', '.', '..']) {
    t.test(`a call with the id "${id}" is not sent`, async (t) => {
      const { api, backend } = await openPage(t)
      await t.rejects(async () => api.zones.read(id), TypeError)
      t.same(backend.requests, [])
    })
  }

  t.test('a call with an invalid body does not compile', async (t) => {
    const { api, backend } = await openPage(t)
    // @ts-expect-error: a zone has a name
    await t.rejects(api.zones.create({}), { code: 'VALIDATION_FAILED' })
    // @ts-expect-error: the name is a string
    await t.rejects(api.zones.update(7, { name: 7 }), { code: 'VALIDATION_FAILED' })
    // @ts-expect-error: calibration has its own route
    await t.rejects(api.floors.calibrate.accept(7, []), { code: 'VALIDATION_FAILED' })

    t.same(backend.requests, [])
  })

  t.test('a call can be aborted', async (t) => {
    const { api, backend } = await openPage(t)
    const controller = new AbortController()
    backend.respond = () => controller.abort(new Error('the page was left'))

    await t.rejects(api.zones.list({ signal: controller.signal }), {
      name: 'ApiError',
      code: 'ABORTED',
      status: 0,
      cause: { message: 'the page was left' }
    })
  })
})

t.test('a download', async (t) => {
  t.test('a download has the file name and type of the response', async (t) => {
    const { api, backend } = await openPage(t)
    const bytes = Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 0xff])
    backend.respond = (_request, response) =>
      response
        .writeHead(200, {
          'content-type': 'application/pdf',
          'content-disposition': 'attachment; filename="people.pdf"'
        })
        .end(bytes)
    const file = await api.personnel.export.pdf({ query: { active: true } })

    t.ok(file instanceof Blob)
    t.match(file, { name: 'people.pdf', type: 'application/pdf', size: bytes.length })
    t.same(Buffer.from(await file.arrayBuffer()), bytes)
    t.equal(backend.requests[0]?.url, '/api/personnel/export/pdf?active=true')
  })

  t.test('a download is named after its path without a Content-Disposition header', async (t) => {
    const { api } = await openPage(t)
    t.equal((await api.personnel.export.csv()).name, 'csv')
  })
})

t.test('an upload', async (t) => {
  const plan = (): Blob => new Blob([new Uint8Array(300_000)], { type: 'image/png' })

  const uploads: readonly (readonly [string, (api: Api, form: FormData) => Promise<unknown>])[] = [
    ['/api/floors/7/upload', (api, form) => api.floors.upload(7, form)],
    ['/api/personnel/7/photo', (api, form) => api.personnel.photo.upload(7, form)],
    ['/api/personnel/import', (api, form) => api.personnel.import(form)]
  ]
  for (const [path, send] of uploads) {
    t.test(`an upload to ${path} sends a form unchanged`, async (t) => {
      const { api, backend } = await openPage(t)
      const form = new FormData()
      form.append('plan', new Blob(['the plan']), 'plan.png')
      await send(api, form)

      t.match(backend.requests, [
        { method: 'POST', url: path, body: /name="plan"; filename="plan.png"[\s\S]*the plan/ }
      ])
    })
  }

  t.test('an upload reports its progress', async (t) => {
    const { api } = await openPage(t)
    const progress: { sentBytes: number; totalBytes: number | null }[] = []
    const response = await api.floors.upload(7, plan(), { onProgress: (seen) => void progress.push(seen) })

    t.same(response, { success: true })
    const last = progress.at(-1)
    t.ok(progress.length > 1 && last !== undefined && last.sentBytes >= 300_000)
    t.equal(last?.sentBytes, last?.totalBytes)
  })

  t.test('an upload sends a single file in the given field', async (t) => {
    const { api, backend } = await openPage(t)
    await api.personnel.photo.upload('p-1', new Blob(['a face']), { field: 'photo' })

    t.match(backend.requests[0]?.body, /name="photo"; filename="blob"/)
  })

  t.test('a rejected upload has the same error as other calls', async (t) => {
    const { api } = await openPage(t, { env: { UPLOAD_LIMIT: '100KiB' } })
    await t.rejects(api.floors.upload(7, plan()), { name: 'ApiError', code: 'BODY_TOO_LARGE', status: 413 })
  })

  t.test('an upload can be aborted before and after it starts', async (t) => {
    const { api } = await openPage(t)
    await t.rejects(api.floors.upload(7, plan(), { signal: AbortSignal.abort() }), { code: 'ABORTED' })

    const controller = new AbortController()
    const onProgress = (): void => controller.abort()
    await t.rejects(api.floors.upload(7, plan(), { signal: controller.signal, onProgress }), { code: 'ABORTED' })
  })

  t.test('an upload reports an unreachable service', async (t) => {
    const { api, gateway, jar } = await openPage(t)
    jar.set('csrf_token', 'held')
    await gateway.app.close()

    await t.rejects(api.floors.upload(7, plan()), { code: 'NETWORK_FAILED', status: 0 })
  })
})
