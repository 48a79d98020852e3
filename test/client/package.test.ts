import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }

const root = fileURLToPath(new URL('../..', import.meta.url))

t.test('the package', async (t) => {
  for (const [name, { types, default: code }] of Object.entries(packageFile.exports)) {
    t.test(`offers ${name}, built and with its types`, async (t) => {
      const source = `${root}${code.replace('./dist/', '').replace(/\.js$/, '.ts')}`

      t.ok(existsSync(`${root}${types}`), types)
      t.same(
        Object.keys(await import(`${root}${code}`)).toSorted(),
        Object.keys(await import(source)).toSorted(),
        'run `npm run build`'
      )
    })
  }
})
