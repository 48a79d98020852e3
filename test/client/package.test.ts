import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { ROOT } from '../../scripts/lib/root.js'
import { VERSION } from '../../src/client/version.js'

t.test('the package', async (t) => {
  t.test('the client library reports the version of the package', async (t) => t.equal(VERSION, packageFile.version))

  for (const [name, paths] of Object.entries(packageFile.exports)) {
    // One file of a folder is enough.
    const [types = '', code = ''] = [paths.types, paths.default].map((path) => path.replace('*', 'zones'))
    t.test(`the package exports ${name} with its types`, async (t) => {
      const source = code.replace('./dist/', '../../')

      t.ok(existsSync(join(ROOT, types)), types)
      t.same(
        Object.keys(await import(join(ROOT, code))).toSorted(),
        Object.keys(await import(source)).toSorted(),
        'run `npm run build`'
      )
    })
  }
})
