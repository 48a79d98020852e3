import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { ROOT } from '../../scripts/lib/root.js'

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

const filesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:md|ya?ml|json|js|ts|tsx|sh)$/.test(name) && !/node_modules|\bdist\b/.test(name))
    .map((name) => join(folder, name))

const FILES = ['README.md', 'CONTRIBUTING.md', 'docker-compose.yml', 'Dockerfile.gateway', 'Dockerfile.relay']
const FOLDERS = ['docs', 'deploy', 'examples']

/** Versions behind the name of a package, an image or a program, and the default version of an image. */
const VERSION = /gatehouse-(?:server|client|backend|gateway|relay|demo)[ :-](\d+\.\d+\.\d+)|ARG VERSION=(\S+)/g

t.test('every file that names a version of a package or an image names that of package.json', async (t) => {
  const found = [...FILES, ...FOLDERS.flatMap(filesIn)].flatMap((file) =>
    [...read(file).matchAll(VERSION)].map(([text, version, argument]) => ({ file, text, version: version ?? argument }))
  )
  t.ok(found.length > 5)
  t.same(
    found.filter(({ version }) => version !== packageFile.version),
    []
  )
})

t.test('the lockfile has the name and the version of package.json', async (t) => {
  const { name, version } = packageFile
  t.match(JSON.parse(read('package-lock.json')), { name, version, packages: { '': { name, version } } })
})

t.test('the newest section of the changelog is the version of package.json', async (t) => {
  const [, version, date = ''] = /^## (\S+) - (\S+)$/m.exec(read('CHANGELOG.md')) ?? []
  t.equal(version, packageFile.version)
  t.match(date, /^\d{4}-\d{2}-\d{2}$/)
})
