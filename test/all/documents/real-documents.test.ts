import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { readDescription } from '../../../src/openapi/description.js'

/** Published descriptions of 100 KB to 1.7 MB, and the number of their operations. */
const DOCUMENTS: readonly (readonly [string, number])[] = [
  ['@figma/rest-api-spec/openapi/openapi.yaml', 54],
  ['@readme/oas-examples/3.0/json/readme-legacy.json', 36],
  ['@readme/oas-examples/3.0/json/star-trek.json', 120],
  ['@readme/oas-examples/3.0/yaml/star-trek.yaml', 120],
  ['@readme/oas-examples/3.1/yaml/readme.yaml', 54],
  ['@gitbook/api/spec/openapi.json', 377]
]

for (const [name, count] of DOCUMENTS) {
  t.test(`${name} is read without errors`, async (t) => {
    const file = join(ROOT, 'node_modules', name)
    t.ok(statSync(file).size > 100_000)
    const { paths, warnings } = readDescription(file, () => false)

    t.equal(paths.flatMap(({ operations }) => operations).length, count)
    t.same(warnings, [])
  })
}
