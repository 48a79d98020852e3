import t from 'tap'
import {
  channelNameError,
  isTooLong,
  isUserListed,
  personalChannel,
  resolveChannel
} from '../../../src/relay/core/channel-names.js'
import { ReplyError } from '../../../src/relay/core/codes.js'
import { configOf } from '../../helper/relay-rules.js'

const { channels: RULES } = configOf({
  channel: { namespaces: [{ name: 'floor' }, { name: 'named', channel_regex: '^[a-z]+$' }] }
})

t.test('a channel name', async (t) => {
  const kinds: [name: string, namespace: string | null, isPrivate: boolean][] = [
    ['floor:7', 'floor', false],
    ['floor:7:8', 'floor', false],
    ['floor', '', false],
    ['$floor:7', 'floor', true],
    ['$secret', '', true],
    [':7', '', false],
    ['nope:7', null, false],
    ['Floor:7', null, false],
    ['__proto__:7', null, false]
  ]
  for (const [name, namespace, isPrivate] of kinds) {
    t.test(
      `the channel ${name} belongs to ${namespace === null ? 'no namespace' : `the namespace "${namespace}"`}`,
      async (t) => {
        const kind = resolveChannel(name, RULES)

        if (namespace === null) t.match(kind, { code: 102 })
        else t.match(kind, { namespace, isPrivate })
      }
    )
  }

  t.test('the length of a channel name is measured in bytes', async (t) => {
    t.notOk(isTooLong('x'.repeat(255), RULES))
    t.ok(isTooLong('x'.repeat(256), RULES))
    t.notOk(isTooLong('é'.repeat(127), RULES))
    t.ok(isTooLong('é'.repeat(128), RULES))
  })

  t.test('a channel name is ASCII unless its namespace has a pattern', async (t) => {
    const errorCodeOf = (name: string): number | null => {
      const resolved = resolveChannel(name, RULES)
      if (resolved instanceof ReplyError) return resolved.code
      return channelNameError(name, resolved, RULES)?.code ?? null
    }

    t.equal(errorCodeOf('floor:7 a~'), null)
    t.equal(errorCodeOf('floor:\u007f'), 107)
    t.equal(errorCodeOf('floor:\u0000'), 107)
    t.equal(errorCodeOf('floor:ä'), 107)
    t.equal(errorCodeOf('named:abc'), null)
    t.equal(errorCodeOf('named:abc1'), 107)
    t.equal(errorCodeOf('$named:abc'), null)
  })

  const listed: [name: string, user: string, isListed: boolean][] = [
    ['floor:room#42', '42', true],
    ['floor:room#41,42', '42', true],
    ['floor:room#41,42', '4', false],
    ['floor:room#', '', false],
    ['floor:room', '42', false],
    ['floor:a#1#42', '42', true],
    ['floor:a#1#42', '1', false]
  ]
  for (const [name, user, isListed] of listed) {
    t.test(`the channel ${name} is ${isListed ? '' : 'not '}for the user "${user}"`, async (t) => {
      t.equal(isUserListed(name, user, RULES), isListed)
    })
  }

  t.test('a personal channel name contains both boundaries', async (t) => {
    t.equal(personalChannel('42', 'floor', RULES), 'floor:#42')
    t.equal(personalChannel('42', '', RULES), '#42')
  })
})
