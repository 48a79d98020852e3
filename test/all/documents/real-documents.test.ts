import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { readDescription } from '../../../src/openapi/description.js'

/** A published description, and two with what generators write, with the number of their operations. */
const DOCUMENTS: readonly (readonly [string, number])[] = [
  ['node_modules/@figma/rest-api-spec/openapi/openapi.yaml', 54],
  ['test/openapi/fixtures/shop.yaml', 7],
  ['test/openapi/fixtures/trains.yaml', 3]
]

for (const [file, count] of DOCUMENTS) {
  t.test(`${file} is read without errors`, async (t) => {
    const { paths, warnings } = readDescription(join(ROOT, file), () => false)

    t.equal(paths.flatMap(({ operations }) => operations).length, count)
    t.same(warnings, [])
  })
}
