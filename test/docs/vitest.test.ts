import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { environment } from '../helper/environment.js'

/** The packages of the project, with the build in place of its own ones. */
const installPackages = async (folder: string): Promise<void> => {
  const modules = join(folder, 'node_modules')
  await mkdir(modules)
  for (const name of ['centrifuge', 'vitest', 'ws', 'vite'])
    await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  for (const [name, entry] of [
    ['gatehouse-server', 'index.js'],
    ['gatehouse-backend', 'backend/index.js']
  ] as const) {
    await mkdir(join(modules, name))
    writeFileSync(join(modules, name, 'package.json'), '{ "type": "module", "exports": "./index.js" }')
    writeFileSync(join(modules, name, 'index.js'), `export * from '${join(ROOT, 'dist/src', entry)}'\n`)
  }
}

t.test('the test of the page about Vitest passes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-vitest-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const page = readFileSync(join(ROOT, 'docs/how-to/test-and-embed.md'), 'utf8')
  const [, code = ''] = /^`orders\.test\.js`:\n\n```js\n(.*?)^```$/ms.exec(page) ?? []
  await installPackages(folder)
  writeFileSync(join(folder, 'orders.test.js'), code)
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  // Without the variables that tap adds to processes of a test.
  const args = ['-i', `PATH=${environment.path}`, process.execPath, vitest, 'run', '--reporter=json']
  const { stdout } = await promisify(execFile)('env', [...args, '--testTimeout=120000', '--hookTimeout=120000'], {
    cwd: folder
  })
  const { success, numPassedTests } = JSON.parse(stdout.slice(stdout.indexOf('{')))
  t.same({ success, numPassedTests }, { success: true, numPassedTests: 2 })
})
