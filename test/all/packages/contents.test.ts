import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkPackage, createPackageFromTarballData, type ResolutionKind } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import t from 'tap'
import packageFile from '../../../package.json' with { type: 'json' }
import { packedPackages, run } from './tarballs.js'

/** All dependencies of each package that is small. */
const DEPENDENCIES: Readonly<Record<string, readonly string[]>> = {
  'gatehouse-client': ['@sinclair/typebox', 'centrifuge'],
  'gatehouse-backend': ['@sinclair/typebox', 'jsonwebtoken', 'undici']
}

/** Versions that are exact, because later ones in their range need Node.js 22. */
const EXACT = ['@fastify/cookie', '@fastify/static', 'light-my-request']

/** Node.js before 12 and `require` before Node.js 20.19, which no supported version is. */
const OLD_RESOLUTIONS: readonly ResolutionKind[] = ['node10', 'node16-cjs']

for (const { name, folder, tarball, manifest } of packedPackages()) {
  t.test(
    `${name} has a README, a licence, a description and no sources, tests, maps or parts of the demo`,
    async (t) => {
      const files = run(folder, 'tar', '-tzf', tarball).trim().split('\n')
      t.same(
        files.filter((file) => /\.(?:map|test\.js|vue)$|(?<!\.d)\.ts$|\/(?:test|demo|web)\//.test(file)),
        []
      )
      for (const file of ['package.json', 'README.md', 'LICENSE']) t.ok(files.includes(`package/${file}`), file)
      t.match(readFileSync(join(folder, 'README.md'), 'utf8'), new RegExp(`^# ${name}\n`))
      t.ok(manifest.description.length > 40)
      t.ok(manifest.keywords.length > 3)
      t.equal(manifest.version, packageFile.version)
    }
  )

  t.test(`publint finds nothing in ${name}`, async (t) => {
    const { messages, pkg } = await publint({ pkgDir: folder, pack: false, strict: true })
    t.same(
      messages.map((message) => formatMessage(message, pkg)),
      []
    )
  })

  t.test(`the types of ${name} resolve in ES modules and bundlers`, async (t) => {
    const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)))
    t.ok(analysis.types)
    const problems = 'problems' in analysis ? analysis.problems : []
    t.same(
      problems.filter((problem) => !('resolutionKind' in problem && OLD_RESOLUTIONS.includes(problem.resolutionKind))),
      []
    )
  })

  t.test(`${name} has ranges of its dependencies, none for the demo, and only optional peers`, async (t) => {
    const { dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
    t.equal(optionalDependencies, undefined)
    for (const [dependency, range] of Object.entries(dependencies)) {
      t.match(range, EXACT.includes(dependency) ? /^\d/ : /^\^\d/, dependency)
      t.notMatch(dependency, /pglite|fontsource|pdfkit|fontkit|bcrypt/)
    }
    for (const peer of Object.keys(peerDependencies)) t.same(peerDependenciesMeta[peer], { optional: true }, peer)
    const expected = DEPENDENCIES[name]
    if (expected !== undefined) t.same(Object.keys(dependencies).toSorted(), expected)
  })
}

t.test('the packages for browsers and backends have no side effects', async (t) => {
  for (const { name, manifest } of packedPackages())
    t.equal(manifest.sideEffects, name === 'gatehouse-server' ? undefined : false, name)
})

t.test('only the outer manifest of gatehouse-server has entry points', async (t) => {
  const folder = packedPackages().find(({ name }) => name === 'gatehouse-server')?.folder ?? ''
  const manifest = JSON.parse(readFileSync(join(folder, 'dist/package.json'), 'utf8'))
  t.same(Object.keys(manifest), ['version', 'type', 'optionalDependencies'])
})
