import { readFileSync } from 'node:fs'
import t from 'tap'
import { DESCRIPTOR_FILE, protobufDescriptor } from '../../../scripts/protocol.js'

t.test('the descriptor of the protobuf messages matches protocol.proto', async (t) => {
  t.equal(readFileSync(DESCRIPTOR_FILE, 'utf8'), protobufDescriptor(), 'run `npm run protocol`')
})
