import t from 'tap'
import { CONNECTION_SORTS } from '../../src/relay/admin/contract.js'
import { listStateOf } from '../../src/relay-admin/list-query.js'

const INITIAL = { sort: 'since', order: 'desc' } as const
const stateOf = (query: Readonly<Record<string, string>>) => listStateOf(query, CONNECTION_SORTS, INITIAL)

t.test('the state of a list in the URL', async (t) => {
  t.test('search, order and page are read from the query', async (t) => {
    const query = { search: 'ada', sort: 'user', order: 'asc', page: '3' }
    t.same(stateOf(query), { ...query, page: 3 })
  })

  t.test('an empty query is the initial state', async (t) => t.same(stateOf({}), { search: '', ...INITIAL, page: 0 }))

  for (const sort of ['__proto__', 'constructor', 'name', '']) {
    t.test(`the unknown column "${sort}" is replaced by the initial one`, async (t) => {
      t.match(stateOf({ sort, order: 'asc' }), INITIAL)
    })
  }
  t.test('an unknown order is replaced by the initial one', async (t) => {
    t.match(stateOf({ sort: 'user', order: 'up' }), { sort: 'user', order: 'desc' })
  })

  for (const page of ['-1', '1.5', '1e300', 'Infinity', 'x', '100']) {
    t.test(`the page "${page}" is replaced by the first one`, async (t) => t.equal(stateOf({ page }).page, 0))
  }

  t.test('a search that the relay would reject is truncated', async (t) => {
    t.equal(stateOf({ search: 'x'.repeat(300) }).search.length, 256)
  })
})
