import t from 'tap'
import { DEFAULT_INSTRUCTIONS, gathers, instructionError } from '../../emergency-types.js'
import { concerns } from '../../web/emergency-title.js'
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
  host: null,
  wardenFloorId: 'f-1',
  lastSeenAt: null,
  markedBy: null,
  markedAt: null,
  ...more
})
const people = [
  person('José Abel', { department: 'Research', isFireWarden: true }),
  person('Bea Kim', { kind: 'visitor', company: 'Corvus Audit', status: 'safe', wardenFloorId: 'f-2' }),
  person('Chen Ito', {
    kind: 'contractor',
    company: 'Halden Elevators',
    zoneName: null,
    floorName: null,
    buildingName: null,
    status: 'unknown'
  }),
  person('Dana Roth', { department: 'Research', status: 'safe', wardenFloorId: null })
]
const wardens = [
  { floorId: 'f-1', floorName: 'Ground floor', buildingName: 'Main House', wardens: ['Ann', 'Bob'] },
  { floorId: 'f-2', floorName: 'First floor', buildingName: 'Main House', wardens: [] }
]
const options = { grouping: 'status', search: '', gathers: true, wardens } as const
const titles = (more: Partial<Parameters<typeof groupsOf>[1]>) =>
  groupsOf(people, { ...options, ...more }).map(({ title, total, safe, people: found }) => [
    title,
    total,
    safe,
    found.length
  ])

t.test('a search changes no total, and finds names, categories, companies, departments, roles and zones', async (t) => {
  for (const [search, found] of [
    ['jose', 1],
    ['visitor', 1],
    ['corvus', 1],
    ['halden contractor', 1],
    ['research', 2],
    ['warden', 1],
    ['reception', 3],
    ['nobody', 0]
  ] as const) {
    const groups = groupsOf(people, { ...options, search })
    t.same(
      groups.map(({ total }) => total),
      [1, 1, 2],
      search
    )
    t.equal(
      groups.reduce((sum, group) => sum + group.people.length, 0),
      found,
      search
    )
  }
})

t.test('people are grouped by status, zone, department and warden, those with most missing first', async (t) => {
  t.same(titles({}), [
    ['Missing', 1, 0, 1],
    ['No position', 1, 0, 1],
    ['Safe', 2, 2, 2]
  ])
  t.same(titles({ gathers: false })[0]?.[0], 'Not confirmed')
  t.same(titles({ grouping: 'zone' }), [
    ['No position', 1, 0, 1],
    ['Reception, Ground floor, Main House', 3, 2, 3]
  ])
  t.same(
    titles({ grouping: 'department' }).map(([title]) => title),
    ['Halden Elevators', 'Research', 'Corvus Audit']
  )
  t.same(titles({ grouping: 'warden' }), [
    ['Ann, Bob: Ground floor, Main House', 2, 0, 2],
    ['No warden: First floor, Main House', 1, 1, 1],
    ['No warden: floor not known', 1, 1, 1]
  ])
})

t.test('an alarm concerns its building, all buildings without one, and a page without a building', async (t) => {
  const alarm = (buildingId: string | number | null) => ({ id: '1', buildingId }) as Emergency
  t.same(
    [concerns(alarm('2'), '2'), concerns(alarm(2), '2'), concerns(alarm('2'), '1'), concerns(alarm(null), '1')],
    [true, true, false, true]
  )
  t.equal(concerns(alarm('2'), null), true, 'to be safe')
})

t.test('the default instructions fit their types', async (t) => {
  t.equal(instructionError('intruder', DEFAULT_INSTRUCTIONS.intruder), null)
  for (const text of ['LEAVE THE BUILDING', 'Evacuate this site now', 'Hide or exit your building'])
    t.type(instructionError('intruder', text), 'string', text)
  for (const text of ['Do not leave the building.', 'Never exit the premises', 'Leave lights off in the building'])
    t.equal(instructionError('intruder', text), null, text)
  t.equal(instructionError('fire', 'Leave the building'), null)
  t.same(
    (['fire', 'intruder', 'medical', 'chemical', 'other'] as const).map((type) => gathers(type, DEFAULT_INSTRUCTIONS)),
    [true, false, false, true, false]
  )
})
