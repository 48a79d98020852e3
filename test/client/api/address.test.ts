import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { address } from '../../../src/client/api/address.js'
import { checkProperty } from '../../helper/property.js'

t.test('the address of a call', async (t) => {
  t.test('the address contains any id within its path segment', async (t) => {
    await checkProperty(
      t,
      fc.property(
        fc.string({ unit: 'grapheme' }).filter((id) => !['', '.', '..'].includes(id)),
        (id) => {
          const { pathname, search, hash } = new URL(address('/api/zones/:id/x', id), 'http://gateway')
          const [, , , segment = '', last, ...more] = pathname.split('/')
          assert.deepEqual([decodeURIComponent(segment), last, more, search, hash], [id, 'x', [], '', ''])
        }
      )
    )
  })

  t.test('the address contains every query parameter', async (t) => {
    const values = fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean()))
    await checkProperty(
      t,
      fc.property(fc.dictionary(fc.string({ minLength: 1 }), values), (query) => {
        const { searchParams } = new URL(address('/api/zones', undefined, query), 'http://gateway')
        for (const [name, expected] of Object.entries(query))
          assert.deepEqual(searchParams.getAll(name), expected.map(String))
      })
    )
  })
})
