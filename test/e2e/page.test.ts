import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import t from 'tap'
import { startBrowser } from '../helper/browser.js'
import { openDemoPage, pngOf, type Role } from '../helper/demo-page.js'
import { DEMO_PASSWORD, startDemoStack } from '../helper/demo-stack.js'

// One stack and one browser for all of them; each test has a window, an account and things of its own.
t.setTimeout(300_000)
const stack = await startDemoStack(t)
const browser = await startBrowser(t)

const REFUSED = /Failed to load resource: the server responded with a status of 4\d\d/
const PLAN = 'canvas[role=img]'

const signIn = async (page: Page, email: string, password: string): Promise<void> => {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Resolves when the picture is another one: nothing but markers changes on it. */
const pictureChanges = async (page: Page): Promise<void> => {
  const before = await page.locator(PLAN).evaluate((canvas) => (canvas as unknown as Canvas).toDataURL())
  await page.waitForFunction(
    ([selector, picture]) => (queryPlan(selector) as unknown as Canvas).toDataURL() !== picture,
    [PLAN, before] as const
  )
}
/** The DOM is the browser's; here only what is used of it has a name. */
interface Canvas {
  toDataURL(): string
}
declare const queryPlan: (selector: string) => unknown

/** The floors that positions come from, in the order in which they come. */
const listenTo = (page: Page) => {
  const floors: string[] = []
  const looks: (() => void)[] = []
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      for (const [, floor = ''] of String(payload).matchAll(/"channel":"floor:([^"]+)","pub"/g)) floors.push(floor)
      for (const look of looks.splice(0)) look()
    })
  )
  const until = async (isEnough: () => boolean): Promise<void> => {
    while (!isEnough()) await new Promise<void>((resolve) => looks.push(resolve))
  }
  return { floors, until }
}

t.test('the demo page', async (t) => {
  t.test('signs in, comes back to the page that was asked for, and shows markers that move', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack)
    await page.addInitScript('globalThis.queryPlan = (selector) => document.querySelector(selector)')
    await page.goto('/live/f-2')
    await page.waitForURL('**/login?returnTo=**')

    await signIn(page, 'admin@example.com', DEMO_PASSWORD)
    await page.waitForURL('**/live/f-2')
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('Last update: just now').waitFor()
    await pictureChanges(page)
    await pictureChanges(page)
    t.same(complaints, [])
  })

  t.test('leaves the channel of a floor when another one is shown', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'viewer' })
    const { floors, until } = listenTo(page)
    await page.goto('/live/f-1')
    await until(() => floors.includes('f-1'))
    await page.getByLabel('Floor', { exact: true }).selectOption('f-4')
    await page.waitForURL('**/live/f-4')
    await until(() => floors.includes('f-4'))

    const since = floors.length
    await until(() => floors.length >= since + 3)
    t.same([...new Set(floors.slice(since))], ['f-4'])
    t.same(complaints, [])
  })

  t.test('finds people by name, on this floor and on others', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'viewer' })
    await page.goto('/live/f-1')
    const people = page.getByRole('region', { name: 'Who is where' }).getByRole('button')
    await people.first().waitFor()
    await page.getByLabel('Search people and things').fill('a')
    await page.getByLabel('Search people and things').fill('an')
    await page.getByText('On other floors').waitFor()
    await people.last().click()
    await page.waitForURL((url) => url.pathname !== '/live/f-1')
    t.same(complaints, [])
  })

  t.test('says when the relay is gone, and recovers when it is back', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'viewer', expected: /WebSocket/ })
    await page.goto('/live/f-1')
    await page.getByText('Live', { exact: true }).waitFor()

    await stack.killRelay()
    await page.getByText('The live connection is lost').waitFor()
    await page.getByText('Offline', { exact: true }).waitFor()

    await page.getByRole('button', { name: 'Try now' }).click()
    await page.getByText('The live connection is lost').waitFor()

    await stack.startRelay()
    await page.getByText('Live', { exact: true }).waitFor({ timeout: 60_000 })
    await page.getByText('The live connection is lost').waitFor({ state: 'detached' })
    await page.getByText('Last update: just now').waitFor()
    t.same(complaints, [])
  })

  t.test('goes to the login when the session has come to its end, and says so', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'viewer' })
    await page.clock.install()
    await page.goto('/settings')
    await page.getByRole('heading', { name: 'Settings' }).waitFor()

    await page.clock.fastForward('07:56:00')
    await page.getByText('Your session ends in a few minutes').waitFor()
    await page.clock.fastForward('00:05:00')
    await page.getByText('Your session has ended').waitFor()
    t.match(page.url(), '/login?returnTo=')
    t.same(complaints, [])
  })

  t.test('goes to the login when the service no longer knows the session', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'viewer', expected: REFUSED })
    await page.goto('/settings')
    await page.context().addCookies([{ name: 'auth_token', value: 'a.b.c', url: stack.url, httpOnly: true }])
    await page.goto('/dashboard')
    await page.getByText('Your session has ended').waitFor()
    t.same(complaints, [])
  })

  t.test('says that a password is wrong, and after five attempts how long to wait', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { expected: REFUSED })
    await page.goto('/login')
    await signIn(page, 'nobody@example.com', 'wrong')
    await page.getByRole('alert').getByText('the password is wrong').waitFor()
    t.equal(await page.getByLabel('Password').inputValue(), '')

    for (let attempt = 2; attempt <= 6; attempt++) {
      const answered = page.waitForResponse('**/api/auth/login')
      await signIn(page, 'nobody@example.com', 'wrong')
      await answered
    }
    await page.getByRole('alert').getByText('Too many attempts. Try again in 15 minutes.').waitFor()
    t.ok(await page.getByRole('button', { name: 'Sign in' }).isDisabled())
    t.same(complaints, [])
  })

  t.test('signs out', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'viewer' })
    await page.goto('/settings')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL('**/login')
    t.notOk((await page.context().cookies()).some(({ name }) => name.startsWith('auth_')))
    await page.goto('/personnel')
    await page.waitForURL('**/login?returnTo=**')
    t.same(complaints, [])
  })
})

const MENUS: readonly (readonly [Role, readonly string[], readonly string[]])[] = [
  ['admin', ['Live plan', 'Dashboard', 'Personnel', 'Emergency', 'Users', 'Audit log', 'Settings'], []],
  ['operator', ['Live plan', 'Dashboard', 'Personnel', 'Emergency', 'Settings'], ['/users', '/audit']],
  ['viewer', ['Live plan', 'Dashboard', 'Personnel', 'Emergency', 'Settings'], ['/users', '/audit']]
]

t.test('what a role is shown', async (t) => {
  for (const [role, entries, closed] of MENUS) {
    t.test(`as ${role}`, async (t) => {
      const { page, complaints } = await openDemoPage(t, browser, stack, { as: role })
      await page.goto('/settings')
      const menu = page.getByRole('navigation', { name: 'Pages' })
      // Reading all of them waits for none.
      await menu.getByRole('link').first().waitFor()
      t.same(
        (await menu.getByRole('link').allInnerTexts()).map((text) => text.trim()),
        entries
      )
      for (const path of closed) {
        await page.goto(path)
        await page.waitForURL('**/forbidden')
      }
      await page.goto('/personnel')
      await page.getByRole('cell').first().waitFor()
      t.equal(await page.getByRole('button', { name: 'Add a person' }).count(), role === 'viewer' ? 0 : 1)
      t.same(complaints, [])
    })
  }
})

t.test('personnel', async (t) => {
  t.test('is created, edited and deleted, with what is wrong beside its field', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'operator' })
    await page.goto('/personnel')
    await page.getByRole('button', { name: 'Add a person' }).click()
    const form = page.getByRole('dialog')
    await form.getByLabel('First name').fill('Zyta')
    await form.getByLabel('Last name').fill('Zulu')
    await form.getByLabel('E-mail address').fill('no address')
    await form.getByRole('button', { name: 'Create' }).click()
    const email = form.getByLabel('E-mail address')
    await form.locator('[aria-invalid=true]').waitFor()
    t.equal(await email.getAttribute('aria-invalid'), 'true')
    t.equal(await form.locator(`[id="${await email.getAttribute('aria-describedby')}"]`).count(), 1)
    await email.and(page.locator(':focus')).waitFor()

    await email.fill('zyta@example.com')
    await form.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Zyta Zulu was added').waitFor()

    await page.getByLabel('Search by name').fill('zyta')
    await page.getByRole('button', { name: 'Edit Zyta Zulu' }).click()
    await form.getByLabel('Job title').fill('Librarian')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('cell', { name: 'Librarian' }).waitFor()

    await page.getByRole('button', { name: 'Delete Zyta Zulu' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Nothing found').waitFor()
    t.same(complaints, [])
  })

  t.test('gets a photo, and one sees how far it has come', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'operator' })
    await page.goto('/personnel')
    await page
      .getByRole('button', { name: /^Edit / })
      .first()
      .click()
    const dialog = page.getByRole('dialog')
    const network = await page.context().newCDPSession(page)
    const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 400_000 }
    await network.send('Network.emulateNetworkConditions', slow)

    const stored = page.waitForResponse('**/photo')
    await dialog
      .getByLabel('Add a photo')
      .setInputFiles({ name: 'me.png', mimeType: 'image/png', buffer: pngOf(600_000) })
    const bar = dialog.getByRole('progressbar', { name: 'Upload' })
    await bar.waitFor()
    await dialog.getByText(/[1-9]\d? % of 586 KB/).waitFor()
    t.equal((await stored).status(), 201)
    await bar.waitFor({ state: 'detached' })
    await dialog.locator('img.avatar').waitFor()
    await network.send('Network.emulateNetworkConditions', { ...slow, uploadThroughput: -1 })
    // The list behind the form shows it too; what it still asks for after the removal is not there.
    const inList = page.locator('td img.avatar').first()
    await inList.evaluate((image) => (image as unknown as { decode(): Promise<void> }).decode())

    await dialog.getByRole('button', { name: 'Remove' }).click()
    await dialog.locator('img.avatar').waitFor({ state: 'detached' })
    t.same(complaints, [])
  })

  t.test('says why a file is no photo', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'operator', expected: REFUSED })
    await page.goto('/personnel')
    await page
      .getByRole('button', { name: /^Edit / })
      .last()
      .click()
    const file = { name: 'me.png', mimeType: 'image/png', buffer: Buffer.from('no picture at all') }
    await page.getByRole('dialog').getByLabel('Add a photo').setInputFiles(file)
    await page.getByRole('alert').getByText('Send a PNG, JPEG or WebP image.').waitFor()
    t.same(complaints, [])
  })

  t.test('is exported', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'operator' })
    await page.goto('/personnel')
    for (const [button, name] of [
      ['CSV', 'personnel.csv'],
      ['PDF', 'personnel.pdf']
    ] as const) {
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: button }).click()
      t.equal((await download).suggestedFilename(), name)
    }
    t.same(complaints, [])
  })
})

t.test('an alarm', async (t) => {
  t.test('shows who is safe as they get there, and ends', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'operator' })
    await page.goto('/emergency')
    await page.getByRole('button', { name: 'Raise an alarm' }).click()
    const form = page.getByRole('dialog')
    await form.getByLabel('Building').selectOption({ label: 'Workshop' })
    await form.getByRole('button', { name: 'Start the drill' }).click()
    await page.getByRole('heading', { name: 'Missing' }).waitFor()
    await page.getByRole('alert').getByText('Drill').waitFor()
    await page.getByText(/^[1-9]\d* of \d+ safe$/).waitFor({ timeout: 90_000 })

    await page.getByRole('button', { name: 'End the emergency' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End it' }).click()
    await page.getByRole('button', { name: 'Raise an alarm' }).waitFor()
    t.same(complaints, [])
  })
})

t.test('a page on another origin', async (t) => {
  t.test('changes nothing in the name of somebody who is signed in', async (t) => {
    const { page } = await openDemoPage(t, browser, stack, { as: 'admin', extraHTTPHeaders: {} })
    const request = page.context().request
    const people = async (): Promise<number> =>
      (await (await request.get('/api/personnel?limit=1')).json()).meta.total as number
    const before = await people()

    const stranger = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<form method="post" enctype="text/plain" action="${stack.url}/api/personnel">
        <input name='{"firstName":"Mallory","x":"' value='"}'><button>Win a prize</button></form>`)
    })
    stranger.listen(0)
    await once(stranger, 'listening')
    t.teardown(() => stranger.close())
    const { port } = stranger.address() as AddressInfo

    // To a browser the first is the same site as ours, cookies and all; the second is another one.
    for (const host of ['localhost', '127.0.0.1']) {
      await page.goto(`http://${host}:${port}/`)
      const posted = page.waitForResponse('**/api/personnel')
      await page.getByRole('button', { name: 'Win a prize' }).click()
      t.equal((await posted).status(), 403, `a form on ${host}`)

      await page.goto(`http://${host}:${port}/`)
      const scripted = page.waitForResponse('**/api/personnel')
      await page.evaluate((url) => {
        const init = {
          method: 'POST',
          mode: 'no-cors',
          credentials: 'include',
          body: '{"firstName":"Mallory"}'
        } as const
        void fetch(url, init).catch(() => undefined)
      }, `${stack.url}/api/personnel`)
      t.equal((await scripted).status(), 403, `a script on ${host}`)
    }
    t.equal(await people(), before)
  })
})
