import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { usePage } from '../examples/use-page.js'
import { startBrowser } from '../helper/browser.js'
import { environment } from '../helper/environment.js'
import { freePort } from '../helper/free-port.js'
import { scriptArguments } from '../helper/script.js'
import { commandBlocks, DocumentedShell, expectedOutput, hasFragments, type Server } from './command-blocks.js'

const PORTS = ['3000', '4000', '8100']

/** The page with other ports, because those of the page may be in use. */
const pageOnFreePorts = async (): Promise<{ page: string; url: string }> => {
  let page = readFileSync(join(ROOT, 'docs/tutorials/first-backend.md'), 'utf8')
  let url = 'http://localhost:3000'
  for (const port of PORTS) {
    const free = String(await freePort())
    page = page.replaceAll(port, free)
    url = url.replace(port, free)
  }
  return { page, url }
}

/** A folder like a clone in which `npm run packages` has run; tests that create packages do not disturb each other. */
const cloneWithPackages = async (folder: string): Promise<string> => {
  const clone = join(folder, 'gatehouse')
  await mkdir(join(clone, 'dist'), { recursive: true })
  await symlink(join(ROOT, 'examples'), join(clone, 'examples'))
  const args = [...scriptArguments('scripts/packages.ts'), '--output', join(clone, 'dist/packages')]
  await promisify(execFile)(process.execPath, args, { cwd: ROOT })
  return clone
}

t.test('the commands of the tutorial work in an empty folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-tutorial-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const shell = new DocumentedShell(t, folder, {
    PATH: environment.path,
    HOME: environment.all.HOME ?? folder,
    ...environment.network,
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false'
  })
  const { page, url } = await pageOnFreePorts()
  const [where, ...blocks] = commandBlocks(page)
  t.match(where?.commands, 'export GATEHOUSE=')
  await shell.run(`export GATEHOUSE='${await cloneWithPackages(folder)}'`)

  const servers = new Map<string, Server>()
  for (const { commands, isServer } of blocks) {
    if (isServer) {
      // The page asks the reader to stop a program before it is started again.
      await servers.get(commands)?.stop()
      servers.set(commands, await shell.start(commands))
      t.pass(commands)
      continue
    }
    const output = await shell.run(commands)
    for (const fragments of expectedOutput(commands)) t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
  }
  t.equal(servers.size, 3)
  const typescript = join(ROOT, 'node_modules/typescript/bin/tsc')
  t.equal(await shell.run(`node '${typescript}' -p page`), '', 'the example page has no type errors')

  const browserPage = await (await startBrowser(t)).newPage()
  await browserPage.goto(url)
  await usePage(browserPage, 'correct-horse')
})
