import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import {
  NodeLeases,
  type NodeMessage,
  nodeMessageJson,
  parseNodeMessage
} from '../../../src/relay/engine/redis/node-messages.js'
import { checkProperty } from '../../helper/property.js'

t.test('parsing messages between nodes', async (t) => {
  const valid: readonly (readonly [message: NodeMessage, json: Readonly<Record<string, unknown>>])[] = [
    [
      { kind: 'heartbeat', node: 'n', isNew: true },
      { kind: 'here', node: 'n', isNew: true }
    ],
    [
      { kind: 'leave', node: 'n' },
      { kind: 'gone', node: 'n' }
    ],
    [
      { kind: 'request', id: 1, from: 'n', to: null, survey: 'info', params: null },
      { kind: 'ask', id: 1, from: 'n', to: null, question: 'info', params: null }
    ],
    [
      { kind: 'response', id: 1, node: 'n', result: null },
      { kind: 'answer', id: 1, node: 'n', answer: null }
    ],
    [
      { kind: 'failure', id: 1, node: 'n' },
      { kind: 'failed', id: 1, node: 'n' }
    ]
  ]
  for (const [message, json] of valid) {
    t.test(`the JSON of a ${message.kind} message is the one of earlier versions`, async (t) => {
      t.same(JSON.parse(nodeMessageJson(message)), json)
      t.same(parseNodeMessage(JSON.stringify(json)), message)
    })

    t.test(`a ${message.kind} message needs all its fields`, async (t) => {
      for (const name of Object.keys(json)) {
        t.equal(parseNodeMessage(JSON.stringify({ ...json, [name]: undefined })), null, `without ${name}`)
        t.equal(
          parseNodeMessage(JSON.stringify({ ...json, [name]: {} })) === null,
          name !== 'params' && name !== 'answer'
        )
      }
    })
  }

  t.test('an arbitrary message is malformed', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.string({ unit: 'binary' }), (message) => assert.equal(parseNodeMessage(message), null))
    )
  })

  t.test('a message of an unknown kind is malformed', async (t) => {
    for (const text of ['null', '1', '[]', '{}', '{"kind":"constructor"}', '{"kind":"__proto__"}', '{']) {
      t.equal(parseNodeMessage(text), null)
    }
  })
})

t.test('node leases', async (t) => {
  t.test('a node without a heartbeat for the time of its lease has left', async (t) => {
    let nowMs = 0
    const leases = new NodeLeases(7_000, () => nowMs)
    leases.renew('a')
    nowMs = 4_000
    leases.renew('b')
    nowMs = 7_000
    t.same(leases.nodes, ['a', 'b'])
    nowMs = 7_001
    t.same(leases.nodes, ['b'])
    leases.remove('b')

    t.same(leases.nodes, [])
  })
})
