import { execFile } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { PATIENCE_MS, startBrowser } from '../helper/browser.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { scriptArguments } from '../helper/script.js'
import { commandBlocks, DocumentedShell, expectedOutput, hasFragments } from './command-blocks.js'

/** The ports of the pages may be in use. */
const freePorts = async (): Promise<(text: string) => string> => {
  const ports = new Map<string, string>()
  for (const port of ['3000', '4000', '8100']) ports.set(port, String(await freePort()))
  return (text) => text.replaceAll(/\b(?:3000|4000|8100)\b/g, (port) => ports.get(port) ?? port)
}

/** A folder like a clone in which `npm run packages` has run; tests that create packages do not disturb each other. */
const cloneWithPackages = async (folder: string): Promise<string> => {
  const clone = join(folder, 'gatehouse')
  await mkdir(join(clone, 'dist'), { recursive: true })
  await symlink(join(ROOT, 'dist/src'), join(clone, 'dist/src'))
  const args = [...scriptArguments('scripts/packages.ts'), '--output', join(clone, 'dist/packages')]
  await promisify(execFile)(process.execPath, args, { cwd: ROOT })
  return clone
}

const itemsOf = async (page: Page): Promise<number> => Number(await page.textContent('#items'))

/** Marks the counter as soon as it has shown a million. */
const MARK_MILLION = `new MutationObserver((records) => {
  for (const { addedNodes, target } of records)
    for (const { textContent } of addedNodes) if (textContent === '1000000') target.setAttribute('title', 'seen')
}).observe(document.getElementById('items'), { childList: true })`

/** Fails to sign in, signs in, sees the counter move and sign-out end it. */
const usePage = async (page: Page, url: string, password: string): Promise<void> => {
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(url)
  await page.fill('[name=password]', 'a wrong password')
  await page.click('text=Sign in')
  await page.waitForSelector('#error:has-text("Wrong email or password")')
  await page.fill('[name=password]', password)
  await page.click('text=Sign in')
  await page.waitForSelector('#user:has-text("Ada")')
  await eventually(async () => (await itemsOf(page)) > 0, { label: 'the page shows the counter' })
  const before = await itemsOf(page)
  await eventually(async () => (await itemsOf(page)) > before, { label: 'the counter moves' })
  const items = await itemsOf(page)
  await page.click('text=Add 10')
  await eventually(async () => (await itemsOf(page)) >= items + 10, { label: 'the page shows ten more items' })
}

t.test('the quickstart and the tutorial behind it work in an empty folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-quickstart-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const shell = new DocumentedShell(t, folder, {
    PATH: environment.path,
    HOME: environment.all.HOME ?? folder,
    ...environment.network,
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false'
  })
  const onFreePorts = await freePorts()
  const blocksOf = (page: string) =>
    commandBlocks(onFreePorts(readFileSync(join(ROOT, page), 'utf8'))).filter(({ skipped }) => skipped === undefined)
  const run = async (commands: string): Promise<void> => {
    const output = await shell.run(commands)
    for (const fragments of expectedOutput(commands)) t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
  }

  const [build, init, start, ...others] = blocksOf('README.md')
  if (build === undefined || init === undefined || start === undefined)
    throw new Error('the quickstart has three blocks')
  t.match(build.commands, /^npm ci && npm run packages\nexport GATEHOUSE=\$PWD\n$/)
  t.same(others, [])
  await shell.run(`export GATEHOUSE='${await cloneWithPackages(folder)}'`)
  await run(init.commands)
  const settings = join(folder, 'orders/.env')
  t.equal(statSync(settings).mode & 0o777, 0o600)
  writeFileSync(settings, onFreePorts(readFileSync(settings, 'utf8')))
  const [, password = ''] = /^PASSWORD=(.*)$/m.exec(readFileSync(settings, 'utf8')) ?? []

  t.ok(start.isServer)
  const running = await shell.start(start.commands, 'Running at')
  const page = await (await startBrowser(t)).newPage()
  const violations: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) violations.push(message.text())
  })
  await usePage(page, onFreePorts('http://localhost:3000'), password)
  // The next publication of the backend replaces the one of the tutorial, perhaps in the same frame.
  await page.evaluate(MARK_MILLION)
  for (const { commands } of blocksOf('docs/tutorials/first-backend.md')) await run(commands)
  await page.waitForSelector('#items[title=seen]')
  await page.click('text=Sign out')
  await page.waitForSelector('#login:not([hidden])')
  t.same(violations, [])
  await running.stop()

  // The backend in Python takes the place of the other one.
  await cp(join(ROOT, 'examples/quickstart/backend.py'), join(folder, 'orders/backend.py'))
  const manifest = join(folder, 'orders/package.json')
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('node backend.js', 'python3 backend.py'))
  await shell.start(start.commands, 'Running at')
  await usePage(page, onFreePorts('http://localhost:3000'), password)
  await cp(join(ROOT, 'examples/page'), join(folder, 'orders/page'), { recursive: true })
  const typescript = join(ROOT, 'node_modules/typescript/bin/tsc')
  t.equal(await shell.run(`node '${typescript}' -p page`), '', 'the other example page has no type errors')
})
