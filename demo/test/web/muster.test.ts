import t from 'tap'
import { concerns, outcomeOf, titleAndPlace } from '../../web/emergency-title.js'
import { groupsOf } from '../../web/muster.js'
import type { Emergency, MusterPerson } from '../../web/types.js'

const person = (name: string, more: Partial<MusterPerson>): MusterPerson => ({
  transmitterId: name,
  name,
  kind: 'employee',
  status: 'missing',
  isFirstAider: false,
  isFireWarden: false,
  floorId: 'f-1',
  floorName: 'Ground floor',
  buildingName: 'Main House',
  zoneName: 'Reception',
  department: null,
  company: null,
  lastSeenAt: null,
  markedBy: null,
  markedAt: null,
  ...more
})
const people = [
  person('José Abel', { department: 'Research', isFireWarden: true }),
  person('Bea Kim', { kind: 'visitor', company: 'Corvus Audit', status: 'safe' }),
  person('Chen Ito', { kind: 'contractor', company: 'Halden Elevators', zoneName: null, status: 'unknown' }),
  person('Dana Roth', { department: 'Research', status: 'safe' })
]

t.test('everybody is in one group, and a search changes no total', async (t) => {
  for (const [search, found] of [
    ['', 4],
    ['jose', 1],
    ['visitor', 1],
    ['halden contractor', 1],
    ['research', 2],
    ['warden', 1],
    ['reception', 3],
    ['nobody', 0]
  ] as const) {
    const groups = groupsOf(people, { search, gathers: true })
    t.same(
      groups.map(({ title, total }) => [title, total]),
      [
        ['Missing', 1],
        ['No position', 1],
        ['Safe', 2]
      ]
    )
    const shown = groups.reduce((sum, group) => sum + group.people.length, 0)
    t.equal(shown, found, search)
  }
})

t.test('nobody is missing if people stay where they are', async (t) => {
  t.match(groupsOf(people, { search: '', gathers: false })[0], { title: 'Not confirmed', tone: 'warning', total: 1 })
})

t.test('an alarm concerns its building, all buildings without one, and a page without a building', async (t) => {
  const alarm = (buildingId: string | number | null) => ({ id: '1', buildingId }) as Emergency
  t.same(
    [concerns(alarm('2'), '2'), concerns(alarm(2), '2'), concerns(alarm('2'), '1'), concerns(alarm(null), '1')],
    [true, true, false, true]
  )
  t.equal(concerns(alarm('2'), null), true, 'to be safe')
})

t.test('the title of an alarm names its type and its place, the outcome whether it was a mistake', async (t) => {
  const alarm = { id: '1', type: 'medical', buildingName: 'Workshop', outcome: 'mistake', resolution: 'Wrong button' }
  t.equal(titleAndPlace(alarm as unknown as Emergency), 'Medical emergency in Workshop')
  t.equal(outcomeOf(alarm as unknown as Emergency), 'Raised by mistake: Wrong button')
})
