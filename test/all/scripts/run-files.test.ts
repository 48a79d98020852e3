import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'

const TSX = join(ROOT, 'node_modules/tsx/dist/loader.mjs')
const RUN_FILES = join(ROOT, 'scripts/lib/run-files.ts')

t.test('run-files', async (t) => {
  const folder = t.testdir({
    node_modules: {
      tap: {
        'package.json': '{ "type": "module", "exports": "./index.js" }',
        'index.js': `export { t, t as default } from '${join(ROOT, 'scripts/lib/file-test.ts')}'`
      }
    },
    'a.test.mjs': `import t from 'tap'
      globalThis.open = 'a'
      t.teardown(() => { globalThis.open = undefined })
      t.test('one fails', async (t) => t.fail('on purpose'))`,
    'b.test.mjs': `import { t } from 'tap'
      const { open } = globalThis
      await t.test('two', async (t) => t.equal(open, undefined))`,
    'c.test.mjs': '',
    'd.test.mjs': `import { t } from 'tap'
      import { once } from 'node:events'
      await t.test('three', async (t) => {
        setImmediate(() => { throw new Error('thrown later') })
        const thrown = once(process, 'uncaughtException')
        void Promise.reject(new Error('rejected later'))
        await thrown
        await once(process, 'uncaughtException')
        t.pass()
      })`
  })
  const files = ['a.test.mjs', 'b.test.mjs', 'c.test.mjs', 'd.test.mjs']
  const { status, stdout } = spawnSync(process.execPath, ['--import', TSX, RUN_FILES, ...files], {
    cwd: folder,
    env: { PATH: environment.path },
    encoding: 'utf8'
  })

  t.test('run-files runs a file after the teardown of the file before, also if that failed', async (t) => {
    t.match(stdout, /^not ok 1 - a\.test\.mjs/m)
    t.match(stdout, /^ok 2 - b\.test\.mjs/m)
    t.equal(status, 1)
  })

  t.test('run-files reports a file without tests', async (t) => {
    t.match(stdout, /^not ok \d - c\.test\.mjs has no tests$/m)
  })

  t.test('run-files fails the file that throws or rejects outside of its tests', async (t) => {
    for (const message of ['thrown later', 'rejected later'])
      t.match(stdout, new RegExp(`^ {4}not ok \\d - ${message}$`, 'm'))
    t.match(stdout, /^not ok \d - d\.test\.mjs/m)
  })
})
