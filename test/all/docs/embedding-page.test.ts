import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'

/** The packages of the project, with the build in place of its own ones. */
const installPackages = async (folder: string): Promise<void> => {
  const modules = join(folder, 'node_modules')
  await mkdir(modules)
  for (const name of ['centrifuge', 'ws']) await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  for (const [name, entry] of [
    ['gatehouse-server', 'index.js'],
    ['gatehouse-backend', 'backend/index.js']
  ] as const) {
    await mkdir(join(modules, name))
    writeFileSync(join(modules, name, 'package.json'), '{ "type": "module", "exports": "./index.js" }')
    writeFileSync(join(modules, name, 'index.js'), `export * from '${join(ROOT, 'dist/src', entry)}'\n`)
  }
}

t.test('the test of the page about the real servers passes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-embedding-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const page = readFileSync(join(ROOT, 'docs/how-to/test-and-embed.md'), 'utf8')
  const [, code = ''] = /^`orders\.test\.js`:\n\n```js\n(.*?)^```$/ms.exec(page) ?? []
  await installPackages(folder)
  writeFileSync(join(folder, 'orders.test.js'), code)
  // Without the variables that tap adds to processes of a test.
  const args = ['-i', `PATH=${environment.path}`, process.execPath, '--test', '--test-reporter=tap', 'orders.test.js']
  const { stdout } = await promisify(execFile)('env', args, { cwd: folder })
  t.match(stdout, '# pass 2\n# fail 0\n')
})
