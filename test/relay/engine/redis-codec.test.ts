import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import {
  decodeBody,
  decodeMessages,
  encodeBody,
  encodeJoinOrLeave,
  encodeWithoutPosition
} from '../../../src/relay/engine/redis/channel-messages.js'
import { decodeMapBody, decodeMapEntry, encodeMapBody } from '../../../src/relay/engine/redis/map-messages.js'
import { checkProperty } from '../../helper/property.js'
import { PLAIN_WRITE } from './map-contract.js'

t.test('the codec of messages and stream entries', async (t) => {
  const text = fc.json()
  t.test('any publication is decoded as it was encoded', async (t) => {
    await checkProperty(
      t,
      fc.property(text, fc.option(text), fc.option(text), fc.boolean(), fc.nat(), (data, info, tags, delta, time) => {
        const publication = { ...PLAIN_PUBLICATION, data, info, tags, delta }
        const decoded = { data, info, tags, delta, time, version: 0 }
        const [message] = decodeMessages(encodeWithoutPosition(encodeBody(publication, time)))
        assert.deepEqual(message, { kind: 'publication', epoch: '', publication: { ...decoded, offset: 0 } })
        assert.deepEqual(decodeBody(encodeBody(publication, time), 7), { ...decoded, offset: 7 })
      }),
      { numRuns: 50 }
    )
  })

  t.test('binary data is decoded as it was encoded', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.uint8Array(), fc.option(text), fc.nat(), (bytes, tags, version) => {
        const data = Buffer.from(bytes)
        const body = encodeBody({ ...PLAIN_PUBLICATION, data, tags, version }, 5)
        const decoded = { data, info: null, tags, delta: false, time: 5, version, offset: 7 }
        assert.deepEqual(decodeBody(body, 7), decoded)
      }),
      { numRuns: 50 }
    )
  })

  t.test('a message with several publications is decoded in order', async (t) => {
    const bodies = ['"é"', '"\u{1f6aa}"', '1'].map((data, index) =>
      encodeBody({ ...PLAIN_PUBLICATION, data, info: index === 1 ? '{"ü":1}' : null }, 5)
    )
    const text = bodies.map((body, index) => `p${index + 7},e,${body.length},${body}`).join('')
    t.match(decodeMessages(text), [
      { kind: 'publication', epoch: 'e', publication: { data: '"é"', offset: 7, info: null } },
      { kind: 'publication', epoch: 'e', publication: { data: '"\u{1f6aa}"', offset: 8, info: '{"ü":1}' } },
      { kind: 'publication', epoch: 'e', publication: { data: '1', offset: 9 } }
    ])
    t.same(decodeMessages(text.slice(0, -1)), [], 'a truncated message has no publications')
  })

  t.test('any change of a map is decoded as it was encoded, with the entry that it has replaced', async (t) => {
    const entryOf = (body: string, offset: number): string => `${offset},${body.length},${body}`
    const tags = fc.option(fc.dictionary(fc.string(), fc.string()).map((object) => JSON.stringify(object)))
    const key = fc.string({ unit: 'grapheme', minLength: 1 })
    await checkProperty(
      t,
      fc.property(key, text, tags, fc.option(text), fc.boolean(), (key, data, tags, info, delta) => {
        const body = encodeMapBody({ ...PLAIN_WRITE, key, data, tags, info, delta, version: 3 }, 5)
        const decoded = { key, data, tags, info, delta, version: 3, time: 5 }
        assert.deepEqual(decodeMapBody(body, 7), { ...decoded, offset: 7 })
        assert.deepEqual(decodeMapEntry(entryOf(body, 7)), { ...decoded, offset: 7 })
        const previous = encodeMapBody({ ...PLAIN_WRITE, key, data: Buffer.from(data), tags: null }, 4)
        const message = `me,0,${entryOf(body, 7)}me,1,${entryOf(body, 8)}${entryOf(previous, 7)}`
        assert.deepEqual(decodeMessages(message), [
          { kind: 'publication', epoch: 'e', publication: { ...decoded, offset: 7 } },
          {
            kind: 'publication',
            epoch: 'e',
            publication: { ...decoded, offset: 8, previous: { data: Buffer.from(data), tags: null } }
          }
        ])
        assert.deepEqual(decodeMessages(message.slice(0, -1)), [], 'a truncated message has no changes')
      }),
      { numRuns: 50 }
    )
  })

  t.test('joins and leaves are decoded as they were encoded', async (t) => {
    t.same(decodeMessages(encodeJoinOrLeave('join', '{"user":"é"}')), [{ kind: 'join', info: '{"user":"é"}' }])
    t.same(decodeMessages(encodeJoinOrLeave('leave', '{}')), [{ kind: 'leave', info: '{}' }])
  })

  const malformed = [
    '',
    'hello',
    '{"data":1}',
    'p',
    'p1,e,',
    'p1,e,0,',
    'p1,e,10,1,0,-1,-1\n',
    'p1,e,12,1,0,5,-1\n"a"',
    'p1,e,11,1,0,-2,-1\n1',
    'p1,e,11,1,2,-1,-1\n1',
    'p1,e,10,1,0,-1,-1\n1',
    'p1,e,12,1,0,-1,-1\n1',
    'p1,e,11,1,0,-1,-1\n1p2,e,11,1,0,-1,-1\n',
    'p1,e,11,1,0,-1,-1\n1x',
    'p-1,e,11,1,0,-1,-1\n1',
    `p1,${'e'.repeat(100)},11,1,0,-1,-1\n1`,
    `p${'9'.repeat(40)},e,11,1,0,-1,-1\n1`,
    'm',
    'me,0,',
    'me,0,1,15,1,0,1,-1,0\n\na1',
    'me,0,1,13,1,0,1,-1,0\n\na1',
    'me,0,1,13,1,0,0,-1,0\n\n11',
    'me,0,1,13,1,0,2,-1,0\n\na1',
    'me,0,1,13,1,0,1,-1,0\na11',
    'me,0,1,14,1,0,1,-1,0x\n\na1',
    'me,1,1,14,1,0,1,-1,0\n\na1',
    'me,2,1,14,1,0,1,-1,0\n\na1',
    `m${'e'.repeat(100)},0,1,14,1,0,1,-1,0\n\na1`,
    'j',
    'jx',
    'l[1]',
    '__p1:1:x__\u0000'
  ]
  for (const message of malformed) {
    t.test(`a malformed message is not decoded: ${JSON.stringify(message.slice(0, 30))}`, async (t) => {
      t.same(decodeMessages(message), [])
    })
  }

  t.test('decoding an arbitrary message never throws', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.string({ unit: 'binary' }), (message) => {
        decodeMessages(message)
        decodeMessages(`p1,e,${message.length},${message}`)
        decodeMessages(`p1,e,9,${message}`)
        decodeBody(message, 1)
        decodeMessages(`me,1,1,${message.length},${message}`)
        decodeMessages(`me,0,1,9,${message}`)
        decodeMapBody(message, 1)
        decodeMapBody(`1,0,1,-1,0\n${message}`, 1)
      })
    )
  })
})
