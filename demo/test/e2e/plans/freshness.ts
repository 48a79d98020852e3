import type { Locator, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { PLAN } from '../page/page-tests.js'
import { listOf, opacityAt, openPage, publish, stack } from './stack.js'

const OUTAGE = /Failed to load resource|WebSocket/

/** Opens the live plan of a floor with a clock that the test advances. */
const openPlan = async (t: Test, floorId: string, expected?: RegExp) => {
  const opened = await openPage(t, { isSeparate: true, expected })
  await opened.page.clock.install()
  await opened.page.goto(`/live/${floorId}`)
  return opened
}

/** The time by the page's clock, which the tests advance. */
const pageTime = (page: Page) => page.evaluate('Date.now()') as Promise<number>

const listed = (page: Page, name: string) => listOf(page).getByRole('button', { name })

/** Publishes the positions of markers at 10 m, 20 m and so on until the page is live. */
const publishUntilLive = async (page: Page, floorId: string, ids: readonly string[]): Promise<void> => {
  await eventually(async () => {
    const positions = Object.fromEntries(ids.map((id, index) => [id, [10 + 10 * index, 5] as const]))
    await publish(floorId, positions, { timestamp: await pageTime(page) })
    return (await page.getByText('Live', { exact: true }).count()) === 1
  })
}

/**
 * Advances the page's clock in steps until an element appears or disappears. The limits of the page's requests are on its
 * clock too, so each step waits longer in real time than the one before: on a busy machine responses take seconds.
 */
const advanceUntil = async (
  element: Locator,
  stepMs: number,
  state: 'visible' | 'hidden' = 'visible'
): Promise<void> => {
  let waitMs = 50
  await eventually(
    async () => {
      await element.page().clock.fastForward(stepMs)
      waitMs *= 1.5
      await element.waitFor({ state, timeout: waitMs })
      return true
    },
    { label: `${element} ${state}` }
  )
}

/** Publishes until the page reports neither an outage nor stale positions. Its clock advances to the next attempts. */
const publishUntilRecovered = (page: Page, floorId: string): Promise<boolean> =>
  eventually(async () => {
    await publishUntilLive(page, floorId, ['A'])
    if ((await page.getByRole('alert').count()) === 0) return true
    await page.clock.fastForward(5000)
    return false
  })

t.test('the live plan', async (t) => {
  t.test(
    'the live plan is stale ten seconds after the last position, with all markers visible and dimmed',
    async (t) => {
      const { page, pageErrors } = await openPlan(t, 'f-1')
      // Repeated, because a floor without new positions is stale after ten seconds.
      await eventually(async () => {
        await publishUntilLive(page, 'f-1', ['A', 'B', 'C'])
        return (await opacityAt(page, 'f-1', 10, 5)) === 255
      })
      await page.getByText('3 on this floor').waitFor()

      await page.clock.pauseAt((await pageTime(page)) + 10_000)
      await page.getByText('Stale', { exact: true }).waitFor()
      await page.getByRole('alert').getByText('No new positions').waitFor()
      await page.getByText('3 on this floor').waitFor()
      await listed(page, 'A 1').waitFor()
      await page.clock.resume()
      for (const x of [10, 20, 30]) {
        await eventually(async () => (await opacityAt(page, 'f-1', x, 5)) < 255)
        const opacity = await opacityAt(page, 'f-1', x, 5)
        t.ok(opacity > 50 && opacity < 150, `the marker at ${x} m is dimmed: ${opacity}`)
      }
      await page.clock.fastForward(10 * 60_000)
      await listed(page, 'A 10 min').waitFor()
      await page.getByText('3 on this floor').waitFor()
      t.same(pageErrors, [])
    }
  )

  t.test('a late entry moves no marker back', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-4')
    await publishUntilLive(page, 'f-4', ['A'])
    await listed(page, 'A').waitFor()
    await eventually(async () => (await opacityAt(page, 'f-4', 10, 5)) > 0)
    await publish('f-4', { A: [40, 5] }, { timestamp: (await pageTime(page)) - 30_000 })
    await publish('f-4', { B: [20, 5] }, { timestamp: await pageTime(page) })
    await eventually(async () => (await opacityAt(page, 'f-4', 20, 5)) > 0)

    t.ok(await opacityAt(page, 'f-4', 10, 5), 'the marker is still there')
    t.equal(await opacityAt(page, 'f-4', 40, 5), 0)
    t.same(pageErrors, [])
  })

  t.test('a transmitter that changes floors disappears from its old floor', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-8')
    await publishUntilLive(page, 'f-8', ['A', 'B'])
    await page.getByText('2 on this floor').waitFor()
    await publish('f-8', { A: [10, 5] }, { timestamp: await pageTime(page), onFloor: 'f-4' })
    await page.getByText('1 on this floor').waitFor()

    await eventually(async () => (await opacityAt(page, 'f-8', 10, 5)) === 0)
    t.ok(await opacityAt(page, 'f-8', 20, 5), 'the other marker is still there')
    t.same(pageErrors, [])
  })

  t.test('a page that an operator disconnects for good says so and connects on request', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-1', OUTAGE)
    await publishUntilLive(page, 'f-1', ['A'])
    await stack.api('disconnect', { user: 'demo-viewer', disconnect: { code: 4500, reason: 'maintenance' } })
    await page.getByRole('alert').getByText('The service ended the connection: maintenance').waitFor()
    t.equal(await page.getByText('Reconnecting').count(), 0)
    await page.getByRole('button', { name: 'Connect again' }).click()
    await publishUntilLive(page, 'f-1', ['A'])

    t.same(pageErrors, [])
  })

  t.test('the live plan is stale while the relay hangs, and recovers without a click', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-1', OUTAGE)
    await publishUntilLive(page, 'f-1', ['A'])
    stack.signal('relay', 'SIGSTOP')
    t.teardown(() => stack.signal('relay', 'SIGCONT'))
    await advanceUntil(page.getByText('Stale', { exact: true }), 2000)
    await page.getByRole('alert').getByText('No new positions').waitFor()
    // Without pings from the relay, the client connects again.
    await advanceUntil(page.getByText(/^(Connecting|Offline)$/), 10_000)
    stack.signal('relay', 'SIGCONT')
    await advanceUntil(page.getByText(/^(Waiting|Stale|Live)$/), 5000)
    await publishUntilRecovered(page, 'f-1')

    t.same(pageErrors, [])
  })

  t.test('a page that is reloaded during an outage of the backend recovers without a click', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-1', OUTAGE)
    await page.locator(PLAN).waitFor()
    await stack.kill('backend')
    await page.reload()
    await page.getByRole('alert').getByText('Trying again').first().waitFor()
    t.equal(await page.locator(PLAN).count(), 0)
    await stack.start('backend')
    await advanceUntil(page.locator(PLAN), 30_000)
    await publishUntilRecovered(page, 'f-1')

    t.same(pageErrors, [])
  })

  t.test('a page whose permissions cannot be loaded appears when the service is back', async (t) => {
    const { page, context, pageErrors } = await openPlan(t, 'f-1', OUTAGE)
    await page.locator(PLAN).waitFor()
    await page.route('**/api/auth/backend-me', (route) => route.abort())
    await context.clearCookies({ name: 'auth_permissions' })
    await page.reload()
    await page.getByRole('alert').getByText('Trying again').waitFor()
    await page.unroute('**/api/auth/backend-me')
    await advanceUntil(page.locator(PLAN), 20_000)

    t.same(pageErrors, [])
  })
})
