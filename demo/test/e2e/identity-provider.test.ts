import type { Page } from 'playwright-core'
import t from 'tap'
import { startBrowser } from '../../../test/helper/browser.js'
import { openDemoPage } from '../helper/demo-page.js'
import { startDemoStack } from '../helper/demo-stack.js'

// Like `npm start -- --oidc`: gateway, backend and identity provider as separate processes. Nobody needs to move.
const [stack, browser] = await Promise.all([
  startDemoStack(t, { DEMO_SIMULATOR: 'off' }, { oidc: true }),
  startBrowser(t)
])

const CLIENT_ERRORS = /Failed to load resource: the server responded with a status of 4\d\d/

const startAtProvider = (page: Page) => page.getByRole('link', { name: 'Sign in with the identity provider' }).click()
const pick = (page: Page, account: string) => page.locator(`button[value=${account}]`).click()
const signOut = (page: Page) => page.getByRole('button', { name: 'Sign out' }).click()
const confirmAtProvider = (page: Page) => page.getByRole('button', { name: 'Yes, sign out' }).click()
const cookieNames = async (page: Page): Promise<string[]> =>
  (await page.context().cookies(stack.url)).map(({ name }) => name)

t.test('with an identity provider', async (t) => {
  t.test('a user signs in through the provider, reaches the requested page, and signs out everywhere', async (t) => {
    const { page, pageErrors, findings } = await openDemoPage(t, browser, stack)
    await page.goto('/site/users?page=1')
    await page.waitForURL('**/login?returnTo=**')
    await page.getByRole('link', { name: 'Sign in with the identity provider' }).waitFor()
    t.same(await findings(), [], 'the login page is accessible')

    await startAtProvider(page)
    await pick(page, 'admin')
    await page.waitForURL(`${stack.url}/site/users?page=1`)
    await page.getByRole('cell', { name: 'Olive Operator' }).waitFor()
    t.notMatch(await page.evaluate('document.cookie'), /oidc_session|auth_token=/, 'scripts see no token')
    t.match(await page.evaluate('document.cookie'), 'auth_via_oidc=true')

    // Simulates an expired app session with a valid provider session.
    for (const name of ['auth_token', 'auth_user', 'auth_permissions', 'auth_token_expiry'])
      await page.context().clearCookies({ name })
    await page.goto('/login?returnTo=%2Fsite%2Fusers')
    await page.waitForURL(`${stack.url}/site/users`)
    await page.getByRole('cell', { name: 'Olive Operator' }).waitFor()

    await signOut(page)
    await confirmAtProvider(page)
    await page.waitForURL('**/login**')
    t.same(
      (await cookieNames(page)).filter((name) => name !== 'csrf_token'),
      [],
      'no session cookie is left'
    )
    await startAtProvider(page)
    await page.locator('button[value=admin]').waitFor()
    t.same(pageErrors, [])
  })

  t.test('a user without an account gets an error page and can sign in with another account', async (t) => {
    const { page } = await openDemoPage(t, browser, stack, { expected: CLIENT_ERRORS })
    await page.goto('/login')
    await startAtProvider(page)
    await pick(page, 'nobody')
    await page.getByRole('heading', { name: 'You do not have an account here' }).waitFor()
    t.match(await page.textContent('main'), 'nobody@example.com')
    await page.getByRole('link', { name: 'Go to the start page' }).click()
    await page.waitForURL('**/login**')
    t.ok((await cookieNames(page)).includes('oidc_exchange_failed'), 'there is no redirect loop')

    await page.goto('/auth/oidc/logout')
    await confirmAtProvider(page)
    await page.waitForURL('**/login**')
    await startAtProvider(page)
    await pick(page, 'viewer')
    await page.waitForURL(/\/live/)
    t.ok((await cookieNames(page)).includes('auth_token'), 'another account can sign in')
  })
})
