import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { copyBuild, PROGRAMS } from '../../scripts/image/assemble.js'
import { importsOf, packageFolders } from '../../scripts/image/packages.js'
import { ROOT } from '../../scripts/lib/root.js'
import { instructionsOf, textsOf } from '../all/deploy/dockerfile.js'
import { shipped } from '../all/deploy/shipped.js'

const NAMES = ['Dockerfile.gateway', 'Dockerfile.relay', 'demo/Dockerfile']

// `npm run test:containers` builds the images and checks users, files, health checks and labels.
for (const name of NAMES) {
  t.test(`${name} has base images of a fixed version as build arguments`, async (t) => {
    const all = instructionsOf(shipped(name))
    t.same(textsOf(all, 'FROM'), [
      '$NODE_IMAGE AS node',
      '--platform=$BUILDPLATFORM $NODE_IMAGE AS build',
      '$RUNTIME_IMAGE'
    ])
    for (const image of textsOf(all, 'ARG').slice(0, 2))
      t.match(image, /^[A-Z_]+_IMAGE=[a-z]+:\d+\.\d+[\w.-]*(?:@sha256:[0-9a-f]{64})?$/)
  })

  t.test(`${name} has the same build stage as the other Dockerfiles, so that its layers are shared`, async (t) => {
    const beginning = (text: string): string => text.slice(text.indexOf('ARG'), text.indexOf('RUN npx'))
    t.equal(beginning(shipped(name)), beginning(shipped('Dockerfile.gateway')))
  })
}

t.test('.dockerignore excludes everything that the build does not need', async (t) => {
  const [first, ...rest] = shipped('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  t.equal(first, '*')
  for (const folder of ['test', 'deploy', 'docs', 'bench', '.git', '.env', 'node_modules', 'dist'])
    t.notOk(rest.includes(`!${folder}`), folder)
})

t.test('packages of an image', async (t) => {
  /** Creates files by path, with their folders. */
  const tree = (files: Readonly<Record<string, string>>): string => {
    const root = t.testdir()
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), text)
    }
    return root
  }
  const manifest = (fields: object): string => JSON.stringify(fields)

  t.test('importsOf finds static, dynamic and re-exported imports of packages, and resolved files', async (t) => {
    const root = tree({
      'dist/a.js':
        "import { a } from 'one'\nimport './b.js'\nexport * from '@scope/two/deep.js'\nconst text = \"from 'none'\"",
      'dist/b.js': "import 'node:fs'\nimport fs from 'fs'\nawait import('three')",
      'dist/c.js': "import.meta.resolve('@scope/four/file.woff2')\nimport.meta.resolve('./d.js')"
    })
    const { packages, missing } = importsOf(join(root, 'dist'))

    t.same([...packages].toSorted(), ['@scope/four', '@scope/two', 'one', 'three'])
    t.same([...missing], [])
  })

  t.test('importsOf reports relative imports of missing files', async (t) => {
    const root = tree({ 'dist/a.js': "import '../elsewhere/b.js'" })
    t.same([...importsOf(join(root, 'dist')).missing], [join(root, 'elsewhere/b.js')])
  })

  t.test('copyBuild adds the files that the parts import, and only these', async (t) => {
    const root = tree({
      'dist/program/main.js': "import '../kinds.js'\nimport 'one'",
      'dist/program/main.d.ts': '',
      'dist/kinds.js': "import './deep/texts.js'",
      'dist/deep/texts.js': "import 'two'",
      'dist/deep/others.js': "import 'three'"
    })
    const packages = copyBuild(join(root, 'dist'), ['program'], join(root, 'image'))
    t.same([...packages].toSorted(), ['one', 'two'])
    t.same(readdirSync(join(root, 'image'), { recursive: true }).toSorted(), [
      'deep',
      'deep/texts.js',
      'kinds.js',
      'program',
      'program/main.js'
    ])
  })

  for (const program of ['gateway', 'relay', 'demo'] as const) {
    t.test(`the image of the ${program} has all files that its program imports`, async (t) => {
      const folder = t.testdir()
      t.ok(copyBuild(join(ROOT, 'dist'), PROGRAMS[program], folder).size > 0)
      t.ok(existsSync(join(folder, 'src/shared/health-check.js')))
      t.equal(existsSync(join(folder, 'demo')), program === 'demo')
    })
  }

  t.test('packageFolders includes all dependencies in the folders where Node.js resolves them', async (t) => {
    const root = tree({
      'node_modules/one/package.json': manifest({ dependencies: { two: '1', three: '1' } }),
      'node_modules/one/node_modules/two/package.json': manifest({ dependencies: { three: '1' } }),
      'node_modules/two/package.json': manifest({}),
      'node_modules/three/package.json': manifest({
        dependencies: { one: '1' },
        optionalDependencies: { absent: '1' }
      }),
      'node_modules/other/package.json': manifest({})
    })
    t.same(packageFolders(root, ['one']), [
      'node_modules/one',
      'node_modules/one/node_modules/two',
      'node_modules/three'
    ])
    t.throws(() => packageFolders(root, ['absent']), /absent, which is not installed/)
  })
})
