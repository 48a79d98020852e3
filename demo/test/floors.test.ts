import { deflateSync } from 'node:zlib'
import t from 'tap'
import { form, startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const admin = await backend.signIn('admin')

const request = (method: string, path: string, body?: unknown) => backend.request(method, path, admin, body)
const floorOf = async (id: string) => (await request('GET', `/api/context/floor/${id}`)).json().data.floor
const uploadPlan = (id: string, file: Buffer) => {
  const { headers, body } = form(file, 'plan.png')
  return backend.send(`/api/floors/${id}/upload`, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${admin}` },
    ...(body !== undefined && { body })
  })
}

const chunk = (type: string, data: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  // The check sum is not verified by the backend.
  return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)])
}

/** A PNG file of this size. */
const png = (width: number, height: number): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 0], 8)
  const pixels = deflateSync(Buffer.alloc(16))
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0))
  ])
}

t.test('the plan of a floor', async (t) => {
  t.test('an uploaded plan fits the floor until it is calibrated', async (t) => {
    t.equal((await floorOf('f-2')).planImage, null)
    t.equal((await uploadPlan('f-2', png(1200, 800))).status, 201)
    // The floor is 60 × 25 m: the height limits the scale.
    const { planImage, imageWidth, imageHeight, pixelsPerMetre } = await floorOf('f-2')
    t.same([imageWidth, imageHeight, pixelsPerMetre], [1200, 800, 32])
    t.match(planImage, { x: 0, y: 0, width: 37.5, height: 25, rotation: 0 })
    t.match(planImage.url, /^\/api\/floors\/f-2\/plan\?v=\d+$/)
    t.equal((await request('GET', planImage.url)).headers['content-type'], 'image/png')
  })

  t.test('a calibration by two points places the plan on the floor', async (t) => {
    const referencePoints = [
      { pixel: { x: 120, y: 80 }, metre: { x: 0, y: 0 } },
      { pixel: { x: 1120, y: 80 }, metre: { x: 50, y: 0 } }
    ]
    const calibrated = await request('POST', '/api/floors/f-2/calibrate', { referencePoints })
    t.match(calibrated.json().data, { pixelsPerMetre: 20, rotation: 0, origin: { x: 120, y: 80 } })
    t.equal((await floorOf('f-2')).pixelsPerMetre, 32, 'the calibration is not accepted yet')
    await request('POST', '/api/floors/f-2/calibrate/accept', {})
    const { planImage, calibratedAt } = await floorOf('f-2')
    t.match(planImage, { x: -6, y: -4, width: 60, height: 40 })
    t.type(calibratedAt, 'string')
  })

  t.test('a calibration of a rotated plan maps both points', async (t) => {
    const referencePoints = [
      { pixel: { x: 500, y: 300 }, metre: { x: 10, y: 5 } },
      { pixel: { x: 500, y: 500 }, metre: { x: 20, y: 5 } }
    ]
    const { data } = (await request('POST', '/api/floors/f-2/calibrate', { referencePoints, dryRun: true })).json()
    t.equal(data.pixelsPerMetre, 20)
    t.equal(Math.round(data.rotation), 90)
    // Rotated by 90 degrees, the x axis of the floor points down and its y axis to the left.
    t.same([Math.round(data.origin.x), Math.round(data.origin.y)], [600, 100])
  })

  t.test('another image needs another calibration', async (t) => {
    await uploadPlan('f-2', png(600, 250))
    const { planImage, calibratedAt } = await floorOf('f-2')
    t.match(planImage, { x: 0, y: 0, width: 60, height: 25 })
    t.equal(calibratedAt, null)
  })

  t.test('a plan is removed by setting its URL to null', async (t) => {
    await request('PUT', '/api/floors/f-2', { imageUrl: null })
    t.equal((await floorOf('f-2')).planImage, null)
    t.equal((await request('GET', '/api/floors/f-2/plan')).status, 404)
  })

  const svg = (content: string, attributes = 'viewBox="0 0 740 250"'): Buffer =>
    Buffer.from(
      `<?xml version="1.0"?><!-- plan --><svg xmlns="http://www.w3.org/2000/svg" ${attributes}>${content}</svg>`
    )

  t.test('an SVG drawing is a plan that can run and load nothing', async (t) => {
    t.equal((await uploadPlan('f-3', svg('<script>alert(1)</script>'))).status, 201)
    const { planImage, imageWidth, imageHeight } = await floorOf('f-3')
    t.same([imageWidth, imageHeight], [740, 250])
    t.match((await request('GET', planImage.url)).headers, {
      'content-type': 'image/svg+xml',
      'content-disposition': /^attachment/,
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'x-content-type-options': 'nosniff'
    })
    t.equal((await uploadPlan('f-3', svg('', 'width="30px" height="20"'))).status, 201)
  })

  const TYPE = 'UNSUPPORTED_MEDIA_TYPE'
  const BAD: readonly (readonly [string, Buffer, number, string])[] = [
    ['an SVG without a size', svg('', ''), 415, TYPE],
    ['a page', Buffer.from('<html><svg xmlns="http://www.w3.org/2000/svg"></svg></html>'), 415, TYPE],
    ['an empty file', Buffer.alloc(0), 415, TYPE],
    ['a truncated PNG', png(10, 10).subarray(0, 12), 415, TYPE],
    ['a JPEG without a frame', Buffer.from('ffd8ffe000104a46', 'hex'), 415, TYPE],
    ['a small file with a huge image', png(60_000, 60_000), 413, 'IMAGE_TOO_LARGE'],
    ['an image without width', png(0, 10), 415, TYPE]
  ]
  for (const [title, file, status, code] of BAD) {
    t.test(`a plan upload rejects ${title}`, async (t) => {
      const response = await uploadPlan('f-4', file)
      t.same([response.status, response.json().error.code], [status, code])
      t.equal((await floorOf('f-4')).planImage, null)
    })
  }
})

t.test('the area of a zone', async (t) => {
  const square = (x: number, y: number, side: number) => [
    { x, y },
    { x: x + side, y },
    { x: x + side, y: y + side },
    { x, y: y + side }
  ]
  const zoneAt = (id: string) => request('GET', `/api/zones/${id}`)

  t.test('a changed area is stored with its centre', async (t) => {
    t.equal((await request('PUT', '/api/zones/3', { polygon: square(1, 1, 4) })).status, 200)
    t.match((await zoneAt('3')).json().data, { polygon: square(1, 1, 4), center: { x: 3, y: 3 } })
  })

  const BAD: readonly (readonly [string, unknown, string])[] = [
    [
      'crosses itself',
      [
        [1, 1],
        [5, 5],
        [5, 1],
        [1, 5]
      ],
      'crosses itself'
    ],
    ['leaves the floor', square(70, 1, 5), 'must be inside the floor'],
    [
      'has two points',
      [
        [1, 1],
        [5, 5]
      ],
      'needs at least 3 points'
    ]
  ]
  for (const [title, polygon, message] of BAD) {
    t.test(`an area that ${title} is rejected`, async (t) => {
      const { error } = (await request('PUT', '/api/zones/3', { polygon })).json()
      t.match(error, { code: 'VALIDATION_FAILED', details: [{ path: '/polygon', message }] })
      t.equal((await request('POST', '/api/zones', { name: 'New', floorId: 'f-1', polygon })).status, 400)
    })
  }

  t.test('a zone cannot move to a floor that is too small for its area', async (t) => {
    await request('PUT', '/api/zones/3', { polygon: square(60, 1, 10) })
    const { error } = (await request('PUT', '/api/zones/3', { floorId: 'f-4' })).json()
    t.match(error, { code: 'VALIDATION_FAILED', details: [{ path: '/floorId' }] })
    t.equal((await request('PUT', '/api/zones/3', { floorId: 'f-1', name: 'Renamed' })).status, 200)
  })
})

t.test('a person is in the zone whose area contains the position', async (t) => {
  const { simulator } = backend.backend
  await simulator.tick()
  const readPosition = async () => {
    const { positions } = (await request('GET', '/api/context/floor/f-5')).json().data
    return positions.find(({ entityType }: { entityType: string }) => entityType === 'asset')
  }
  const { position, zoneId, transmitterId } = await readPosition()
  const around = [
    [position.x - 0.5, position.y - 0.5],
    [position.x + 0.5, position.y - 0.5],
    [position.x + 0.5, position.y + 0.5],
    [position.x - 0.5, position.y + 0.5]
  ]
  const created = await request('POST', '/api/zones', { name: 'Shelf', floorId: 'f-5', polygon: around })
  t.equal(created.status, 201)
  // Zones are read every few seconds.
  for (let second = 0; second < 3; second += 1) await simulator.tick()
  const moved = await readPosition()
  t.same([moved.transmitterId, moved.zoneId], [transmitterId, created.json().data.id])
  t.not(moved.zoneId, zoneId)
})
