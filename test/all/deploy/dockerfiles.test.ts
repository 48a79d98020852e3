import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { importsOf, packageFolders } from '../../../scripts/image/packages.js'
import { environmentOf, instructionsOf, lastStage, textsOf } from './dockerfile.js'
import { shipped } from './shipped.js'

const PORTS = {
  'Dockerfile.gateway': 'GATEWAY_PORT',
  'Dockerfile.relay': 'RELAY_PORT',
  'demo/Dockerfile': 'DEMO_BACKEND_PORT'
}

for (const [name, portVariable] of Object.entries(PORTS)) {
  t.test(name, async (t) => {
    const dockerfile = shipped(name)
    const all = instructionsOf(dockerfile)
    const last = lastStage(dockerfile)

    t.test(`${name} has base images of a fixed version as build arguments`, async (t) => {
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
      t.equal(beginning(dockerfile), beginning(shipped('Dockerfile.gateway')))
    })

    t.test(`the last stage of ${name} only copies built files and Node.js`, async (t) => {
      t.same(textsOf(last, 'RUN'), [])
      for (const copy of textsOf(last, 'COPY')) {
        t.match(
          copy,
          /^--from=(?:node \/usr\/local\/bin\/node|build (?:--chown=10001:10001 )?\/build\/(?:image|audit|page)) /
        )
      }
    })

    t.test(`${name} runs its program as an unprivileged user without a shell`, async (t) => {
      t.same(textsOf(last, 'USER'), ['10001:10001'])
      t.match(textsOf(last, 'ENTRYPOINT'), [/^\["node", (?:"--[\w=-]+", )*"dist\/[a-z/]+\/main\.js"\]$/])
      t.same(textsOf(last, 'STOPSIGNAL'), ['SIGTERM'])
    })

    t.test(`the health check of ${name} uses the port that the program listens on`, async (t) => {
      const [check = ''] = textsOf(last, 'HEALTHCHECK')
      t.match(check, `http://127.0.0.1:$${portVariable}/`)
      t.same(textsOf(last, 'EXPOSE'), [environmentOf(last)[portVariable]])
    })

    t.test(`${name} has OCI labels`, async (t) => {
      const [labels = ''] = textsOf(last, 'LABEL')
      for (const label of ['title', 'description', 'licenses']) t.match(labels, `org.opencontainers.image.${label}=`)
    })
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
    t.same(missing, [])
  })

  t.test('importsOf reports relative imports of missing files', async (t) => {
    const root = tree({ 'dist/a.js': "import '../elsewhere/b.js'" })
    t.match(importsOf(join(root, 'dist')).missing, [/a\.js imports \.\.\/elsewhere\/b\.js$/])
  })

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
