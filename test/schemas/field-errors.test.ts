import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import t from 'tap'
import { fieldErrors } from '../../schemas/field-errors.js'
import { email, flag, integer, label, maybe, text, texts } from '../../schemas/field-kinds.js'
import { id } from '../../schemas/ids.js'

const schema = Type.Object({
  name: label('A name.'),
  email: maybe(email('An address.')),
  phone: maybe(text('A number.', 4)),
  capacity: maybe(integer(1, 10, 'How many.')),
  isExit: maybe(flag('Whether.')),
  floorId: maybe(id('Which floor.')),
  tags: maybe(texts('Words.', 1))
})

const CASES: readonly (readonly [field: string, value: unknown, message: string])[] = [
  ['name', undefined, 'is required'],
  ['name', '', 'must not be empty'],
  ['name', 5, 'must be string'],
  ['name', 'x'.repeat(201), 'must have at most 200 characters'],
  ['email', 'no address', 'does not have the right form'],
  ['email', '@', 'must have at least 3 characters'],
  ['email', 5, 'must be string or null'],
  ['phone', '12345', 'must have at most 4 characters'],
  ['capacity', 0, 'must be at least 1'],
  ['capacity', 11, 'must be at most 10'],
  ['capacity', '5', 'must be integer or null'],
  ['isExit', 'yes', 'must be boolean or null'],
  ['floorId', '', 'must not be empty'],
  ['tags', ['x', 5], 'must be array length to be less or equal to 1']
]

t.test('field errors', async (t) => {
  for (const [field, value, message] of CASES) {
    t.test(`the field error is readable: ${field} ${JSON.stringify(value)?.slice(0, 20)}`, async (t) => {
      // As received over the network, without undefined fields.
      const body = JSON.parse(JSON.stringify({ name: 'a', [field]: value }))
      t.same(fieldErrors(Value.Errors(schema, body)), [{ path: `/${field}`, message }])
    })
  }
})
