import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { PATIENCE_MS, startBrowser } from '../../helper/browser.js'
import { environment } from '../../helper/environment.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { commandBlocks, DocumentedShell, expectedOutput, hasFragments } from '../docs/command-blocks.js'
import { quickstartBlocks, quickstartProject } from './tarballs.js'

/** The ports of the pages may be in use. */
const freePorts = async (): Promise<(text: string) => string> => {
  const ports = new Map<string, string>()
  for (const port of ['3000', '4000', '8100']) ports.set(port, String(await freePort()))
  return (text) => text.replaceAll(/\b(?:3000|4000|8100)\b/g, (port) => ports.get(port) ?? port)
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
  const { folder, gatehouse, commands, output } = quickstartProject()
  for (const fragments of expectedOutput(commands)) t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
  const shell = new DocumentedShell(t, folder, {
    PATH: environment.path,
    HOME: environment.all.HOME ?? folder,
    GATEHOUSE: gatehouse
  })
  const onFreePorts = await freePorts()
  const run = async (commands: string): Promise<void> => {
    const output = await shell.run(commands)
    for (const fragments of expectedOutput(commands)) t.ok(hasFragments(output, fragments), `${fragments} in ${output}`)
  }

  const [build, , start, ...others] = quickstartBlocks()
  if (build === undefined || start === undefined) throw new Error('the quickstart has three blocks')
  t.match(build.commands, /^npm ci && npm run packages\nexport GATEHOUSE=\$PWD\n$/)
  t.same(others, [])
  const settings = join(folder, '.env')
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
  const tutorial = onFreePorts(readFileSync(join(ROOT, 'docs/tutorials/first-backend.md'), 'utf8'))
  for (const { commands, skipped } of commandBlocks(tutorial)) if (skipped === undefined) await run(commands)
  await page.waitForSelector('#items[title=seen]')
  await page.click('text=Sign out')
  await page.waitForSelector('#login:not([hidden])')
  t.same(violations, [])
  await running.stop()

  // The backend in Python takes the place of the other one.
  await cp(join(ROOT, 'examples/quickstart/backend.py'), join(folder, 'backend.py'))
  const manifest = join(folder, 'package.json')
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('node backend.js', 'python3 backend.py'))
  await shell.start(start.commands, 'Running at')
  await usePage(page, onFreePorts('http://localhost:3000'), password)
})
