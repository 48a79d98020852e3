import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish.js'
import { addressName, redisAddresses } from '../../../src/relay/engine/redis/address.js'
import { NodeLeases, parseClusterMessage } from '../../../src/relay/engine/redis/cluster.js'
import {
  decodeBody,
  decodeMessages,
  encodeBody,
  encodeJoinOrLeave,
  withoutPosition
} from '../../../src/relay/engine/redis/engine.js'
import { RedisNames } from '../../../src/relay/engine/redis/names.js'
import { Ring } from '../../../src/relay/engine/redis/topology.js'
import { checkProperty } from '../../helper/property.js'

t.test('an envelope', async (t) => {
  const text = fc.json()
  t.test('holds any publication as it was', async (t) => {
    await checkProperty(
      t,
      fc.property(text, fc.option(text), fc.option(text), fc.boolean(), fc.nat(), (data, info, tags, delta, time) => {
        const publication = { ...PLAIN_PUBLICATION, data, info, tags, delta }
        const decoded = { data, info, tags, delta, time, version: 0 }
        const [message] = decodeMessages(withoutPosition(encodeBody(publication, time)))
        assert.deepEqual(message, { kind: 'publication', epoch: '', publication: { ...decoded, offset: 0 } })
        assert.deepEqual(decodeBody(encodeBody(publication, time), 7), { ...decoded, offset: 7 })
      }),
      { numRuns: 50 }
    )
  })

  t.test('stands beside others that were made with it', async (t) => {
    const bodies = ['"é"', '"\u{1f6aa}"', '1'].map((data, index) =>
      encodeBody({ ...PLAIN_PUBLICATION, data, info: index === 1 ? '{"ü":1}' : null }, 5)
    )
    const text = bodies.map((body, index) => `p${index + 7},e,${body.length},${body}`).join('')
    t.match(decodeMessages(text), [
      { kind: 'publication', epoch: 'e', publication: { data: '"é"', offset: 7, info: null } },
      { kind: 'publication', epoch: 'e', publication: { data: '"\u{1f6aa}"', offset: 8, info: '{"ü":1}' } },
      { kind: 'publication', epoch: 'e', publication: { data: '1', offset: 9 } }
    ])
    t.same(decodeMessages(text.slice(0, -1)), [], 'all of them, or none')
  })

  t.test('holds who comes and goes', async (t) => {
    t.same(decodeMessages(encodeJoinOrLeave('join', '{"user":"é"}')), [{ kind: 'join', info: '{"user":"é"}' }])
    t.same(decodeMessages(encodeJoinOrLeave('leave', '{}')), [{ kind: 'leave', info: '{}' }])
  })

  const strange = [
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
    'j',
    'jx',
    'l[1]',
    '__p1:1:x__\u0000'
  ]
  for (const message of strange) {
    t.test(`is none where it says ${JSON.stringify(message.slice(0, 30))}`, async (t) => {
      t.same(decodeMessages(message), [])
    })
  }

  t.test('is none, and nothing worse, whatever it says', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.string({ unit: 'binary' }), (message) => {
        decodeMessages(message)
        decodeMessages(`p1,e,${message.length},${message}`)
        decodeMessages(`p1,e,9,${message}`)
        decodeBody(message, 1)
        assert.equal(parseClusterMessage(message), null)
      })
    )
  })
})

t.test('a message between nodes', async (t) => {
  const good = [
    { kind: 'here', node: 'n', isNew: true },
    { kind: 'gone', node: 'n' },
    { kind: 'ask', id: 1, from: 'n', to: null, question: 'info', params: null },
    { kind: 'answer', id: 1, node: 'n', answer: null },
    { kind: 'failed', id: 1, node: 'n' }
  ]
  for (const message of good) {
    t.test(`is read: ${message.kind}`, async (t) => {
      t.same(parseClusterMessage(JSON.stringify(message)), message)
      for (const name of Object.keys(message)) {
        t.equal(parseClusterMessage(JSON.stringify({ ...message, [name]: undefined })), null, `not without ${name}`)
        t.equal(
          parseClusterMessage(JSON.stringify({ ...message, [name]: {} })) === null,
          name !== 'params' && name !== 'answer'
        )
      }
    })
  }

  t.test('is none where it has no kind of ours', async (t) => {
    for (const text of ['null', '1', '[]', '{}', '{"kind":"constructor"}', '{"kind":"__proto__"}', '{']) {
      t.equal(parseClusterMessage(text), null)
    }
  })
})

t.test('a node that says nothing for the time of its lease', async (t) => {
  t.test('has left', async (t) => {
    let nowMs = 0
    const leases = new NodeLeases(7_000, () => nowMs)
    leases.heard('a')
    nowMs = 4_000
    leases.heard('b')
    nowMs = 7_000
    t.same(leases.nodes, ['a', 'b'])
    nowMs = 7_001
    t.same(leases.nodes, ['b'])
    leases.left('b')

    t.same(leases.nodes, [])
  })
})

t.test('a ring of servers', async (t) => {
  const servers = ['a:1', 'b:1', 'c:1', 'd:1'].map((name) => ({ name }))
  const channels = Array.from({ length: 20_000 }, (_, n) => `floor:${n}`)
  const ownersIn = (ring: Ring<{ name: string }>) => channels.map((channel) => ring.ownerOf(channel).name)

  t.test('gives every server about the same share, in whatever order they are listed', async (t) => {
    const owners = ownersIn(new Ring(servers))
    t.same(ownersIn(new Ring(servers.toReversed())), owners)
    for (const { name } of servers) {
      const share = owners.filter((primary) => primary === name).length / channels.length
      t.ok(share > 0.18 && share < 0.32, `${name} has ${share}`)
    }
  })

  t.test('moves only the channels of a server that leaves', async (t) => {
    const [before, after] = [ownersIn(new Ring(servers)), ownersIn(new Ring(servers.slice(1)))]
    t.ok(before.every((primary, index) => primary === 'a:1' || primary === after[index]))
  })
})

t.test('an address', async (t) => {
  const cases: [url: string, address: object, name: string][] = [
    ['redis://cache', { host: 'cache', port: 6379, db: 0, username: '', password: '', isTls: false }, 'cache:6379'],
    [
      'rediss://me:p%2Cw%40@[::1]:6380/3',
      { host: '::1', port: 6380, db: 3, username: 'me', password: 'p,w@', isTls: true },
      '::1:6380/3'
    ],
    ['redis://:secret@10.0.0.1:1/', { host: '10.0.0.1', port: 1, db: 0, password: 'secret' }, '10.0.0.1:1']
  ]
  for (const [url, address, name] of cases) {
    t.test(`is read: ${url}`, async (t) => {
      const [found] = redisAddresses(url)
      t.match(found, address)
      t.equal(found && addressName(found), name)
    })
  }

  t.test('may be one of several', async (t) => {
    t.same(redisAddresses('redis://a, redis://b:2').map(addressName), ['a:6379', 'b:2'])
  })
})

t.test('names', async (t) => {
  t.test('lead back to the channel, and to nothing else', async (t) => {
    const names = new RedisNames('x')
    for (const channel of ['floor:7', '', '}', '{:a}', 'a}b']) t.equal(names.channelOf(names.channel(channel)), channel)
    for (const name of ['x', 'y{:a}', 'x{a}', 'x{:a', names.service('fleet')]) t.equal(names.channelOf(name), null)
  })
})
