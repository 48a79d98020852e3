/**
 * `npm run draw-cost`: measures the time to draw a frame of the live plan in Chromium: with 500 moving markers in a window of
 * 1440 pixels, and with 1,000 on a normal and on a large screen. A frame at 60 per second has 16.7 ms. A pixel of each frame is read back, which waits until the
 * frame is drawn. The first time of each line is the 10th percentile, which other programs on the machine hardly affect.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { build } from 'vite'
import { print, runCommand, UserError } from './lib/command.js'
import { programOf, chromium as service, thisMachine } from './lib/services.js'

const FRAMES = 300
const WARM_UP = 60
const PANELS = [
  { width: 1140, height: 660, markers: 500 },
  { width: 1280, height: 720, markers: 1000 },
  { width: 2560, height: 1300, markers: 1000 }
]

const pathOf = (folder: string): string => fileURLToPath(new URL(folder, import.meta.url)).replaceAll('\\', '/')
const web = pathOf('../demo/web')
const ENTRY = 'virtual:draw-cost'
const source = `
import { Movement } from '${pathOf('../src/client')}/buildings/movement.ts'
import { FLOORS } from '${pathOf('../demo/backend')}/site/layout.ts'
import { group, withNames } from '${web}/floor-plan/arrangement.ts'
import { drawMarkers } from '${web}/floor-plan/draw-markers.ts'
import { receiversLayer, wallsLayer, zoneLabelsLayer, zonesLayer } from '${web}/floor-plan/ground.ts'
import { MARKER_KINDS } from '${web}/floor-plan/marker.ts'
import { centreOn } from '${web}/floor-plan/viewport.ts'
import { spritesOf } from '${web}/composables/useSprites.ts'

const { width, height, walls, regions } = FLOORS[0]
const floor = { width, height }
const corners = ({ x, y, width, height }) => [[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
const zones = regions.map(({ zoneId, name, rect }) => ({ id: zoneId, name, polygon: corners(rect) }))
const receivers = zones.map(({ polygon: [[x, y]] }) => ({ position: { x: x + 2, y: y + 2 }, status: 'online' }))
const layers = [
  zonesLayer(zones, false),
  wallsLayer(walls, false),
  zoneLabelsLayer(zones, new Map(zones.map(({ id }) => [id, 80]))),
  receiversLayer(receivers)
]
const colour = (token) => ({ '--surface': '#ffffff', '--sunken': '#edf1f3', '--text': '#1b2429' })[token] ?? '#0b6b6b'
const sprites = spritesOf(colour, 1)
/** Measures frames with the view of each frame; the ground is drawn when the view changes, as on the page. */
globalThis.measure = (panel, viewOf) => {
  const movement = new Movement()
  const ids = Array.from({ length: panel.markers }, (_, index) => String(index))
  const moveMarkers = (nowMs) => {
    for (const id of ids) movement.moveTo(id, { x: width * Math.random(), y: height * Math.random() }, nowMs)
  }
  moveMarkers(0)
  const markers = ids.map((id, index) => ({
  id, name: 'Person ' + id, kind: MARKER_KINDS[index % 5], zoneId: null, ageMs: 0, isStale: false, accuracy: 1, position: movement.positionOf(id)
}))

  const size = { width: panel.width, height: panel.height }
  const [ground, canvas] = [0, 1].map(() => Object.assign(document.createElement('canvas'), size))
  const [groundPen, pen] = [ground, canvas].map((element) => element.getContext('2d'))
  const times = []
  let view
  let arrangement
  let covered
  for (let frame = 0; frame < ${FRAMES}; frame += 1) {
    const nowMs = frame * (1000 / 60)
    const hasBatch = frame % 60 === 0
    if (hasBatch) moveMarkers(nowMs)
    const start = performance.now()
    movement.advance(nowMs)
    const next = viewOf(frame)
    if (next !== view || hasBatch) {
      covered = layers.flatMap((layer) => layer.covered?.(next, panel) ?? [])
      const previous = new Map((arrangement?.names ?? []).map(({ marker, side }) => [marker.id, side]))
      arrangement = withNames(group(markers, next.scale, '0'), '0', { view: next, panel, covered, previous })
    }
    if (next !== view) {
      groundPen.clearRect(0, 0, panel.width, panel.height)
      for (const layer of layers) layer.draw({ pen: groundPen, view: next, panel, colour })
      groundPen.getImageData(0, 0, 1, 1)
    }
    view = next
    pen.clearRect(0, 0, panel.width, panel.height)
    drawMarkers(pen, arrangement, sprites, view, panel, covered)
    pen.getImageData(0, 0, 1, 1)
    times.push(performance.now() - start)
  }
  return times.slice(${WARM_UP})
}
const at = (panel, scale) => centreOn(scale, { x: width / 2, y: height / 2 }, { floor, panel })
globalThis.views = {
  'zoomed out, clusters': () => { const view = { scale: 9, x: 0, y: 0 }; return () => view },
  'all markers': (panel) => { const view = at(panel, 18); return () => view },
  'zoomed in, names': (panel) => { const view = at(panel, 40); return () => view },
  'zooming, everything drawn': (panel) => (frame) => at(panel, 12 + (frame % 240) / 4)
}
`

const main = async (args: readonly string[]): Promise<number> => {
  parseArgs({ args: [...args], options: {} })
  const bundle = await build({
    configFile: false,
    logLevel: 'error',
    plugins: [
      {
        name: 'draw-cost',
        resolveId: (id) => (id === ENTRY ? id : null),
        load: (id) => (id === ENTRY ? source : null)
      }
    ],
    build: { write: false, rollupOptions: { input: ENTRY, output: { format: 'iife' } } }
  })
  if (!('output' in bundle)) throw new Error('vite returned more than one bundle')
  const executablePath = process.env.CHROMIUM_PATH || programOf(service, thisMachine(process.env))
  if (executablePath === undefined) throw new UserError('No Chromium: set CHROMIUM_PATH, or put chromium on the PATH')

  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  const page = await browser.newPage()
  await page.evaluate(bundle.output[0].code)
  // The page's script above has these names.
  const names = (await page.evaluate('Object.keys(views)')) as string[]
  for (const panel of PANELS) {
    const { width, height, markers } = panel
    for (const name of names) {
      const call = `measure(${JSON.stringify(panel)}, views['${name}'](${JSON.stringify(panel)}))`
      const times = ((await page.evaluate(call)) as number[]).sort((one, other) => one - other)
      const at = (part: number): string => (times[Math.floor(part * (times.length - 1))] ?? 0).toFixed(2)
      print(
        `${width} × ${height}, ${markers} markers, ${name}: ${at(0.1)} ms, median ${at(0.5)} ms, 95th percentile ${at(0.95)} ms`
      )
    }
  }
  await browser.close()
  return 0
}

await runCommand('Usage: npm run draw-cost', main)
