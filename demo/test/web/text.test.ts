import t from 'tap'
import {
  ago,
  bytesText,
  counted,
  dateTimeText,
  durationText,
  initials,
  percent,
  waitText
} from '../../../src/ui/format.js'
import { matches, searchText } from '../../web/search.js'

t.test('search on the plan', async (t) => {
  t.test('a guest is found by name, category and company, an employee by name', async (t) => {
    const guest = searchText({ name: 'Ines Adler', entityType: 'contractor', company: 'Juniper Cleaning' })
    for (const query of ['ines', 'contractor', 'juniper']) t.ok(matches(guest, query), query)
    t.notOk(matches(guest, 'visitor'))
    t.equal(searchText({ name: 'Emil Roth', entityType: 'employee', company: null }), 'Emil Roth')
  })
})

t.test('search', async (t) => {
  const FITS: readonly (readonly [string, string, boolean])[] = [
    ['José Ångström', 'jose', true],
    ['José Ångström', 'ang', true],
    ['Jose Angstrom', 'ÅNG', true],
    ['Ada Example', 'exa ada', true],
    ['Ada Example', 'ada exx', false],
    ['Ada Example', '  ', true]
  ]
  for (const [text, query, fits] of FITS) {
    t.test(`the search ${fits ? 'finds' : 'does not find'} "${text}" for "${query}"`, async (t) => {
      t.equal(matches(text, query), fits)
    })
  }
})

t.test('formatting', async (t) => {
  const AGES: readonly (readonly [number, string])[] = [
    [-500, 'just now'],
    [400, 'just now'],
    [12_900, '12 s ago'],
    [60_000, '1 min ago'],
    [3 * 3_600_000 + 1, '3 h ago'],
    [50 * 3_600_000, '2 d ago']
  ]
  for (const [past, text] of AGES) {
    t.test(`an age of ${past} ms is shown as "${text}"`, async (t) =>
      t.equal(ago(1_000_000_000 - past, 1_000_000_000), text)
    )
  }

  const WAITS: readonly (readonly [number, string])[] = [
    [0, '1 second'],
    [1, '1 second'],
    [59, '59 seconds'],
    [61, '2 minutes'],
    [900, '15 minutes'],
    [3601, '2 hours']
  ]
  for (const [seconds, text] of WAITS) {
    t.test(`a wait of ${seconds} s is shown as "${text}"`, async (t) => t.equal(waitText(seconds), text))
  }

  t.test('counts are shown with singular or plural', async (t) => {
    t.equal(counted(1, 'person', 'people'), '1 person')
    t.equal(counted(0, 'person', 'people'), '0 people')
    t.equal(counted(2, 'zone'), '2 zones')
  })

  t.test('names are abbreviated to initials', async (t) => {
    t.equal(initials('ada van Example'), 'AE')
    t.equal(initials('Ada'), 'A')
    t.equal(initials(' '), '')
    t.equal(initials('😀 Ωmega'), '😀Ω')
  })

  t.test('sizes and percentages are formatted', async (t) => {
    t.equal(bytesText(512), '512 B')
    t.equal(bytesText(20_480), '20 KB')
    t.equal(bytesText(1_572_864), '1.5 MB')
    t.equal(bytesText(3_221_225_472), '3.0 GB')
    t.equal(percent(1, 3), 33)
    t.equal(percent(5, 3), 100)
    t.equal(percent(1, 0), 0)
  })

  t.test('a missing date is shown as a dash', async (t) => {
    t.equal(dateTimeText(null), '–')
    t.equal(dateTimeText('rubbish'), '–')
    t.match(dateTimeText('2025-11-15T09:30:00Z'), /2025/)
  })
})

t.test('a running time is shown with minutes and seconds, and hours if there are any', async (t) => {
  const texts = [-5, 999, 65_000, 3_599_999, 3_785_000].map(durationText)
  t.same(texts, ['0:00', '0:00', '1:05', '59:59', '1:03:05'])
})
