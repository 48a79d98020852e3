import t from 'tap'
import { startBrowser } from '../../helper/browser.js'
import { freePort } from '../../helper/free-port.js'
import { exchangesIn, startOidcGateway, startProvider } from './fixture.js'

/** A page as an app would have it: it knows who is signed in from the cookie that it may read. */
const PAGE = `<!doctype html>
<html lang="en"><title>App</title>
<p id="who"></p>
<a href="/auth/oidc/login?returnTo=%2Ffloors%3Flevel%3D2">Sign in</a>
<a href="/auth/oidc/logout">Sign out</a>
<script>
const user = document.cookie.split('; ').find((pair) => pair.startsWith('auth_user='))
who.textContent = user ? JSON.parse(decodeURIComponent(user.slice(10))).displayName : 'nobody'
</script></html>`

const start = async (t: Parameters<typeof startProvider>[0], folder: string) => {
  const port = await freePort()
  const app = `http://localhost:${port}`
  const provider = await startProvider(t, {
    client: { redirect_uris: [`${app}/auth/oidc/callback`], post_logout_redirect_uris: [`${app}/`] }
  })
  const gateway = await startOidcGateway(t, {
    issuer: provider.url,
    env: { PUBLIC_URL: app, GATEWAY_PORT: String(port), WEB_ROOT: folder }
  })
  const browser = await startBrowser(t)
  return { app, provider, gateway, page: await browser.newPage() }
}

t.test('in Chromium', async (t) => {
  const folder = t.testdir({ 'index.html': PAGE })

  t.test('one signs in, lands where one wanted, is signed in at the backend, and signs out everywhere', async (t) => {
    const { app, provider, gateway, page } = await start(t, folder)
    await page.goto(`${app}/`)
    t.equal(await page.textContent('#who'), 'nobody')

    await page.click('text=Sign in')
    await page.waitForURL(`${provider.url}/**`)
    await page.click('button[value=ada]')
    await page.waitForURL(`${app}/floors?level=2`)
    t.equal(await page.textContent('#who'), 'Ada Lovelace')
    t.notMatch(await page.evaluate('document.cookie'), /oidc_session|auth_token=/, 'scripts see no token')
    t.match(await page.evaluate('document.cookie'), 'auth_via_oidc=true')

    t.equal(await page.evaluate(`fetch('/api/zones').then((answer) => answer.status)`), 200)
    t.match(gateway.backend.requests.at(-1)?.headers.authorization, /^Bearer ey/)
    t.equal(exchangesIn(gateway.backend).length, 1)

    await page.click('text=Sign out')
    await page.waitForURL(`${provider.url}/**`)
    await page.click('button[value=yes]')
    await page.waitForURL(`${app}/`)
    t.equal(await page.textContent('#who'), 'nobody')
    t.same(await page.context().cookies(app), [], 'nothing is left here')

    await page.click('text=Sign in')
    await page.waitForURL(`${provider.url}/**`)
    t.equal(await page.locator('button[value=ada]').count(), 1, 'the provider asks again')
  })

  t.test('who has no account is told so, and can leave', async (t) => {
    const { app, gateway, page } = await start(t, folder)
    await page.goto(`${app}/auth/oidc/login`)
    await page.click('button[value=bob]')
    await page.waitForURL(`${app}/auth/oidc/callback?**`)
    t.match(await page.textContent('h1'), 'There is no account for you here')
    t.match(await page.textContent('main'), 'bob@example.com')
    await page.goto(`${app}/`)
    t.equal(await page.textContent('#who'), 'nobody', 'the page is there, and nobody is sent round in circles')
    t.equal(exchangesIn(gateway.backend).length, 1)

    await page.goto(`${app}/auth/oidc/logout`)
    await page.click('button[value=yes]')
    await page.waitForURL(`${app}/`)
    await page.goto(`${app}/auth/oidc/login?returnTo=/floors`)
    await page.click('button[value=ada]')
    await page.waitForURL(`${app}/floors`)
    t.equal(await page.textContent('#who'), 'Ada Lovelace', 'another account is not held up')
  })
})
