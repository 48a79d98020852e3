import t from 'tap'
import { openDemoPage } from '../../helper/demo-page.js'
import { browser, stack } from './stack.js'

t.test('the users who watch a floor', async (t) => {
  const operator = await openDemoPage(t, browser, stack, { as: 'operator' })
  const viewer = await openDemoPage(t, browser, stack, { as: 'viewer', isSeparate: true, expected: /403/ })

  t.test('a live plan names the users who watch it', async (t) => {
    await operator.page.goto('/live/f-4')
    await operator.page.getByText('Watched by Olive Operator').waitFor()
    await viewer.page.clock.install()
    await viewer.page.goto('/live/f-4')
    await viewer.page.getByText('Live', { exact: true }).waitFor()
    // A user who joins a floor that is watched already is shown with the next refresh.
    await viewer.page.clock.fastForward(30_000)
    await viewer.page.getByText('Watched by Olive Operator, Vic Viewer').waitFor()
    t.same(operator.pageErrors, [])
  })

  t.test('a viewer cannot watch a floor for other roles', async (t) => {
    await operator.page.goto('/live/f-9')
    await operator.page.getByText('Live', { exact: true }).waitFor()
    await viewer.page.goto('/live/f-9')
    await viewer.page.getByText('Your account may not watch this floor.').waitFor()
    t.equal(await viewer.page.getByText('Watched by').count(), 0)
    t.equal(await viewer.page.getByText('Live', { exact: true }).count(), 0)
  })
})
