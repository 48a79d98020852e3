import type { Test } from 'tap'
import { eventually } from './eventually.js'
import type { BrowserWindow } from './window.js'

/** A phone, a tablet, a laptop and a large screen. */
const SIZES = [
  { width: 390, height: 844 },
  { width: 768, height: 1024 },
  { width: 1440, height: 900 },
  { width: 2560, height: 1300 }
] as const
/**
 * axe runs at these widths, because the layout of phones differs most from the others, and in one theme at each: the themes
 * differ in colours only, and the widths in everything else.
 */
const AXE_THEMES: Readonly<Record<number, 'light' | 'dark'>> = { 390: 'dark', 1440: 'light' }

/** By how many pixels the content is wider than the page. Not `innerWidth`, which grows with the content on a phone. */
const OVERFLOW = `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const { scrollWidth, clientWidth } = document.documentElement
  resolve(scrollWidth - clientWidth)
})))`

/**
 * Checks the page that is shown at all widths: it does not scroll sideways, and axe has no findings in either theme. Restores
 * the window.
 */
export const checkLayouts = async (t: Test, { page, findings }: BrowserWindow, title: string): Promise<void> => {
  const before = page.viewportSize()
  const isTooWide = async (): Promise<boolean> => (await page.evaluate<number>(OVERFLOW)) > 0
  for (const size of SIZES) {
    await page.setViewportSize(size)
    const label = `${title}, ${size.width} px`
    // Charts and plans are drawn again some frames after the window was resized.
    const fits = await eventually(async () => !(await isTooWide())).catch(() => false)
    t.ok(fits, `${label}: the page does not scroll sideways`)
    const colorScheme = AXE_THEMES[size.width]
    if (colorScheme === undefined) continue
    await page.emulateMedia({ colorScheme })
    t.same(await findings(), [], `${label}, ${colorScheme}`)
    await page.emulateMedia({ colorScheme: null })
  }
  if (before) await page.setViewportSize(before)
}
