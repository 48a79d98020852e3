import t from 'tap'
import { hashOf, parseRoute } from '../../src/relay-admin/route.js'

t.test('the fragment of a view', async (t) => {
  for (const name of ['floor:3', '<b>&amp;</b>', 'a?b#c&d=e', 'über 100%', 'x=y']) {
    t.test(`the channel name ${name} survives a round trip`, async (t) => {
      t.same(parseRoute(hashOf('channel', { name })), { view: 'channel', query: { name } })
    })
  }

  for (const hash of ['', '#', '#/', '#/nothing', '#/../config', '#/__proto__', '#/%']) {
    t.test(`"${hash}" is the overview`, async (t) => t.same(parseRoute(hash), { view: 'overview', query: {} }))
  }

  for (const [hash, view] of [
    ['#/channel', 'channels'],
    ['#/channel?name=', 'channels'],
    ['#/connection?client=&search=a', 'connections']
  ]) {
    t.test(`"${hash}" is the list, because nothing is selected`, async (t) =>
      t.same(parseRoute(hash ?? ''), { view, query: {} })
    )
  }

  t.test('empty query values are omitted', async (t) => {
    t.equal(hashOf('channels', { search: '', page: 0 }), '#/channels?page=0')
    t.equal(hashOf('config'), '#/config')
  })
})
