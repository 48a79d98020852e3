import t from 'tap'
import { lastOffset, listStateOf, selectionOf } from '../../web/list-query.js'

const shape = { filterNames: ['status'], sortNames: ['name'], limit: 20 }

t.test('the state of a list is read from the URL', async (t) => {
  const query = { search: ' ada', status: 'open', sort: 'name', order: 'desc', page: '3', other: 'x' }
  const state = listStateOf(query, shape)
  t.same(state, { search: ' ada', filters: { status: 'open' }, sort: 'name', order: 'desc', offset: 40 })
  t.same(selectionOf(state), { search: 'ada', status: 'open', sort: 'name', order: 'desc' })
})

const IGNORED: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  ['no parameters', {}],
  ['an unknown column', { sort: '__proto__', order: 'desc' }],
  ['an unknown order', { order: 'sideways' }],
  ['a repeated parameter', { search: ['a', 'b'], status: null }],
  ...['-1', '0', '1.5', 'two', 'NaN', 'Infinity', '1e300'].map((page) => [`page ${page}`, { page }] as const)
]
for (const [title, query] of IGNORED) {
  t.test(`a URL with ${title} shows the first page of the whole list`, async (t) => {
    const state = listStateOf(query, shape)
    t.same([selectionOf(state), state.offset], [{}, 0])
  })
}

t.test('the last page of a list begins at a multiple of the limit', async (t) => {
  t.same(
    [0, 1, 20, 21, 160].map((total) => lastOffset(total, 20)),
    [0, 0, 0, 20, 140]
  )
})
