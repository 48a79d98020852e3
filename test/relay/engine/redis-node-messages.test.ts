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
  const valid: readonly NodeMessage[] = [
    { kind: 'heartbeat', node: 'n', isNew: true },
    { kind: 'leave', node: 'n' },
    { kind: 'request', id: 1, from: 'n', to: null, survey: 'info', params: null },
    { kind: 'response', id: 1, node: 'n', result: null },
    { kind: 'failure', id: 1, node: 'n' }
  ]
  for (const message of valid) {
    t.test(`a ${message.kind} message is JSON with the fields of its type`, async (t) => {
      t.same(JSON.parse(nodeMessageJson(message)), message)
      t.same(parseNodeMessage(JSON.stringify(message)), message)
    })

    t.test(`a ${message.kind} message needs all its fields`, async (t) => {
      for (const name of Object.keys(message)) {
        t.equal(parseNodeMessage(JSON.stringify({ ...message, [name]: undefined })), null, `without ${name}`)
        t.equal(
          parseNodeMessage(JSON.stringify({ ...message, [name]: {} })) === null,
          name !== 'params' && name !== 'result'
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
