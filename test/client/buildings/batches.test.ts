import assert from 'node:assert/strict'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import fc from 'fast-check'
import t from 'tap'
import { AmbientEntrySchema, PositionEntrySchema } from '../../../schemas/realtime.js'
import { readBatch } from '../../../src/client/buildings/batches.js'
import { checkProperty } from '../../helper/property.js'

const position = { transmitterId: 'T1', position: { x: 1, y: 2 }, positionMethod: 'nearest', floorId: 'f-2' }
const device = { deviceId: 'D1', deviceType: 'phone', receiverId: 'r-9', rssi: -71, timestamp: 1763200000000 }

t.test('a publication', async (t) => {
  t.test('a publication is parsed as a position batch', async (t) => {
    const payload = { type: 'position-batch', data: [position, { ...position, transmitterId: 7, extra: true }] }
    t.same(readBatch(payload), { batch: payload, badEntries: 0 })
  })

  t.test('a publication is parsed as an ambient batch', async (t) => {
    const payload = { type: 'ambient-batch', data: [device, { ...device, manufacturer: null }] }
    t.same(readBatch(payload), { batch: payload, badEntries: 0 })
  })

  const none: readonly unknown[] = [
    null,
    undefined,
    7,
    'position-batch',
    [],
    [position],
    {},
    { type: 'position-batch' },
    { type: 'position-batch', data: null },
    { type: 'position-batch', data: { 0: position, length: 1 } },
    { type: 'Position-Batch', data: [position] },
    { type: ['position-batch'], data: [position] },
    { data: [position] }
  ]
  for (const payload of none) {
    t.test(`a publication is not a batch: ${JSON.stringify(payload)}`, async (t) => {
      t.equal(readBatch(payload), null)
    })
  }
})

t.test('an entry', async (t) => {
  const bad: readonly (readonly [title: string, type: string, entry: unknown])[] = [
    ['is null', 'position-batch', null],
    ['is a text', 'position-batch', 'T1'],
    ['has no transmitter', 'position-batch', { ...position, transmitterId: undefined }],
    ['has an empty transmitter', 'position-batch', { ...position, transmitterId: '' }],
    ['has an object for a transmitter', 'position-batch', { ...position, transmitterId: {} }],
    ['has no position', 'position-batch', { ...position, position: null }],
    ['has half a position', 'position-batch', { ...position, position: { x: 1 } }],
    ['has a text for x', 'position-batch', { ...position, position: { x: '1', y: 2 } }],
    ['has no number for y', 'position-batch', { ...position, position: { x: 1, y: Number.NaN } }],
    ['has no floor', 'position-batch', { ...position, floorId: null }],
    ['has no method', 'position-batch', { ...position, positionMethod: null }],
    ['is of the other kind', 'position-batch', device],
    ['has no device', 'ambient-batch', { ...device, deviceId: null }],
    ['has no type', 'ambient-batch', { ...device, deviceType: 7 }],
    ['has no receiver', 'ambient-batch', { ...device, receiverId: [] }],
    ['has a text for its strength', 'ambient-batch', { ...device, rssi: '-71' }],
    ['has no time', 'ambient-batch', { ...device, timestamp: null }],
    ['is of the other kind', 'ambient-batch', position]
  ]
  for (const [title, type, entry] of bad) {
    t.test(`an entry of a ${type} that ${title} is dropped and counted`, async (t) => {
      const good = type === 'position-batch' ? position : device
      t.match(readBatch({ type, data: [entry, good] }), { batch: { data: [good] }, badEntries: 1 })
      t.equal(readBatch({ type, data: [entry, good] })?.batch.data.length, 1)
    })
  }

  t.test('every entry that is valid by its schema is accepted', async (t) => {
    const id = fc.oneof(fc.string({ minLength: 1, maxLength: 9 }), fc.nat())
    const number = fc.double({ min: -1000, max: 1000, noNaN: true })
    const positions = fc.record(
      {
        transmitterId: id,
        position: fc.record({ x: number, y: number, z: number }, { requiredKeys: ['x', 'y'] }),
        positionMethod: fc.string({ minLength: 1 }),
        floorId: id,
        zoneId: fc.option(id),
        accuracy: fc.option(fc.double({ min: 0, max: 9, noNaN: true })),
        timestamp: fc.option(id),
        more: fc.jsonValue()
      },
      { requiredKeys: ['transmitterId', 'position', 'positionMethod', 'floorId'] }
    )
    const devices = fc.record({
      deviceId: id,
      deviceType: fc.string(),
      manufacturer: fc.option(fc.string()),
      receiverId: id,
      rssi: fc.double({ min: -200, max: 100, noNaN: true }),
      timestamp: id
    })
    for (const [type, entries, schema] of [
      ['position-batch', positions, TypeCompiler.Compile(PositionEntrySchema)],
      ['ambient-batch', devices, TypeCompiler.Compile(AmbientEntrySchema)]
    ] as const) {
      await checkProperty(
        t,
        fc.property<[unknown]>(entries, (entry) => {
          fc.pre(schema.Check(entry))
          assert.equal(readBatch({ type, data: [entry] })?.badEntries, 0)
        })
      )
    }
  })

  t.test('any entry is parsed without an error', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.constantFrom('position-batch', 'ambient-batch'), fc.array(fc.anything()), (type, data) => {
        assert.equal(readBatch({ type, data })?.badEntries, data.length)
      })
    )
  })
})
