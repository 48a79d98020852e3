import t from 'tap'
import { globTest } from '../../../../src/relay/core/nodes/glob.js'

const MATCHES: readonly (readonly [pattern: string, matching: readonly string[], others: readonly string[]])[] = [
  ['floor:7', ['floor:7'], ['floor:77', 'xfloor:7', 'floor:', '']],
  ['*', ['', 'a', 'floor:7', 'line\nbreak'], []],
  ['floor:*', ['floor:', 'floor:7'], ['Floor:7', 'floor']],
  ['a**b', ['ab', 'axb'], ['a', 'abc']],
  ['***?', ['a', 'ab'], ['']],
  ['floor:?', ['floor:7', 'floor:é', 'floor:😀'], ['floor:', 'floor:77']],
  ['floor:[12]', ['floor:1', 'floor:2'], ['floor:3', 'floor:12', 'floor:[12]']],
  ['floor:[!12]', ['floor:3', 'floor:!'], ['floor:1', 'floor:']],
  ['floor:[a-c]', ['floor:a', 'floor:c'], ['floor:d', 'floor:-']],
  ['floor:[!a-c]', ['floor:d', 'floor:-'], ['floor:b']],
  ['floor:[a\\-c]', ['floor:a', 'floor:-'], ['floor:b']],
  ['[^a]', ['^', 'a'], ['b']],
  ['[[]', ['['], ['x']],
  ['[\\]]', [']'], ['\\']],
  ['{floor,chat}:1', ['floor:1', 'chat:1'], ['floor,chat:1', 'room:1']],
  ['{floor,chat*}:1', ['floor:1', 'chat-room:1'], ['floors:1']],
  ['{a,{b,[cd]}}', ['a', 'b', 'c', 'd'], ['e', 'ab']],
  ['a{,b}', ['a', 'ab'], ['b', 'a,']],
  ['\\*', ['*'], ['a', '\\*']],
  ['\\{a,b\\}', ['{a,b}'], ['a', 'b']],
  ['a,b', ['a,b'], ['a', 'b']],
  ['a}]', ['a}]'], ['a']],
  ['$a.b+(c)|^', ['$a.b+(c)|^'], ['$axb+(c)|^', '$a.b']],
  [`${'*'.repeat(1_000_000)}7`, ['floor:7'], ['floor:8']]
]

for (const [pattern, matching, others] of MATCHES) {
  t.test(`the pattern ${pattern.slice(-20)} matches its channel names and no others`, async (t) => {
    const matches = globTest(pattern)
    for (const name of matching) t.equal(matches?.(name), true, name)
    for (const name of others) t.equal(matches?.(name), false, name)
  })
}

for (const pattern of ['[', '[a', '[]', '[!]', 'a[', '[\\', '{a', '{a,{b}', 'a\\', '[c-a]']) {
  t.test(`the pattern ${pattern} is malformed`, async (t) => {
    t.equal(globTest(pattern), null)
  })
}

t.test('a pattern with many stars is matched in a time that is linear in the channel name', async (t) => {
  t.equal(globTest('*a'.repeat(200))?.(`${'a'.repeat(20_000)}b`), false)
})
