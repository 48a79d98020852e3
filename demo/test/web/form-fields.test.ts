import { Type } from '@sinclair/typebox'
import t from 'tap'
import { flag, integer, label, maybe, text } from '../../../schemas/field-kinds.js'
import { id } from '../../../schemas/ids.js'
import { bodyOf, enteredAtFirst, fieldsOf, labelOf, versionOf } from '../../web/form-fields.js'

const schema = Type.Object(
  {
    name: label('What to call it.'),
    notes: maybe(text('Anything.', 2000)),
    email: maybe(text('An address.')),
    capacity: maybe(integer(0, 10, 'How many.')),
    isExit: maybe(flag('Whether one can leave there.')),
    floorId: maybe(id('Which floor.')),
    password: Type.Optional(label('A password.', 1024))
  },
  { title: 'Zone' }
)
const specs = [
  ...['name', 'notes', 'email', 'capacity', 'isExit'],
  { name: 'floorId', options: [{ id: 'f-1', name: 'Ground' }] },
  'password'
]
const fields = fieldsOf(schema, specs)

t.test('the fields of a form', async (t) => {
  t.test('fields have the input type of their schema', async (t) => {
    t.same(
      fields.map(({ kind }) => kind),
      // A password input regardless of the maximum length.
      ['text', 'long', 'email', 'number', 'flag', 'choice', 'password']
    )
  })

  t.test('fields have hints if requested', async (t) => {
    t.equal(fields[0]?.hint, undefined)
    t.equal(fieldsOf(schema, ['capacity'], true)[0]?.hint, 'How many.')
    t.equal(fieldsOf(schema, [{ name: 'capacity', hint: 'Own.' }], true)[0]?.hint, 'Own.')
  })

  t.test('unknown field names are rejected', async (t) => {
    t.throws(() => fieldsOf(schema, ['colour']), { message: 'the schema Zone has no field colour' })
  })

  const LABELS: readonly (readonly [string, string])[] = [
    ['firstName', 'First name'],
    ['departmentId', 'Department'],
    ['isFirstAider', 'First aider'],
    ['email', 'E-mail address'],
    ['notifyBySms', 'Notify by SMS'],
    ['scanIntervalMs', 'Scan interval (ms)'],
    ['rssiThreshold', 'RSSI threshold']
  ]
  for (const [name, expected] of LABELS) {
    t.test(`the label of ${name} is ${expected}`, async (t) => t.equal(labelOf(name), expected))
  }
})

t.test('the values of a form', async (t) => {
  t.test('initial values are the stored ones or the defaults', async (t) => {
    const entered = enteredAtFirst(fieldsOf(schema, ['name', { name: 'isExit', initial: true }]), {
      name: 'Lobby',
      isExit: false
    })
    t.same(entered, { name: 'Lobby', isExit: false })
    t.same(enteredAtFirst(fieldsOf(schema, ['name', { name: 'isExit', initial: true }])), { name: '', isExit: true })
  })

  t.test('the body has null for empty optional fields, and trimmed text except passwords', async (t) => {
    const entered = {
      ...enteredAtFirst(fields),
      name: ' Lobby ',
      capacity: 5,
      isExit: true,
      password: ' x'
    }
    t.same(bodyOf(schema, fields, entered), {
      name: 'Lobby',
      notes: null,
      email: null,
      capacity: 5,
      isExit: true,
      floorId: null,
      password: ' x'
    })
  })
})

t.test('a change names the version of the record that it is based on', async (t) => {
  t.same(versionOf({ version: 3 }), { query: { version: 3 } })
  t.same([versionOf({}), versionOf(undefined)], [{}, {}])
})
