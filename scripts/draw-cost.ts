/**
 * `npm run draw-cost`: measures the time to draw a frame of the live plan with 300 moving markers in Chromium. A frame at
 * 60 per second has 16.7 ms. A pixel of each frame is read back, which waits until the frame is drawn.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { build } from 'vite'
import { print, runCommand, UserError } from './lib/command.js'
import { programOf, chromium as service, thisMachine } from './lib/services.js'

const FRAMES = 600
const MARKERS = 300

const pathOf = (folder: string): string => fileURLToPath(new URL(folder, import.meta.url)).replaceAll('\\', '/')
const folder = pathOf('../demo/web/floor-plan')
const client = pathOf('../src/client')
const ENTRY = 'virtual:draw-cost'
const source = `
import { Movement } from '${client}/realtime/movement.ts'
import { drawMarkers, SPRITE_SIZE } from '${folder}/draw.ts'

const screen = { width: 1280, height: 720 }
const canvas = Object.assign(document.createElement('canvas'), screen)
const pen = canvas.getContext('2d')
const movement = new Movement()
const ids = Array.from({ length: ${MARKERS} }, (_, index) => String(index))
const moveMarkers = (nowMs) => {
  for (const id of ids) movement.moveTo(id, { x: 64 * Math.random(), y: 36 * Math.random() }, nowMs)
}
moveMarkers(0)
const markers = ids.map((id) => ({
  id, name: id, kind: Number(id) % 4 ? 'person' : 'thing', zoneId: null, ageMs: 0, isStale: false, position: movement.positionOf(id)
}))
const spriteOf = (colour) => {
  const sprite = Object.assign(document.createElement('canvas'), { width: SPRITE_SIZE, height: SPRITE_SIZE })
  const brush = sprite.getContext('2d')
  brush.fillStyle = colour
  brush.roundRect(3, 3, 10, 10, 5)
  brush.fill()
  return sprite
}
const sprites = { person: spriteOf('#0b6b6b'), thing: spriteOf('#54626b') }
const times = []
for (let frame = 0; frame < ${FRAMES}; frame += 1) {
  const nowMs = frame * (1000 / 60)
  if (frame % 60 === 0) moveMarkers(nowMs)
  const start = performance.now()
  movement.advance(nowMs)
  pen.clearRect(0, 0, screen.width, screen.height)
  drawMarkers(pen, markers, sprites, 20)
  const submitted = performance.now()
  pen.getImageData(0, 0, 1, 1)
  times.push([submitted - start, performance.now() - start])
}
globalThis.times = times.slice(60)
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
  // The page's script above stores pairs of numbers.
  const times = (await page.evaluate('times')) as [number, number][]
  await browser.close()

  for (const [column, what] of ['submitted', 'drawn'].entries()) {
    const sorted = times.map((time) => time[column] ?? 0).sort((one, other) => one - other)
    const at = (part: number): string => (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(2)
    print(`${MARKERS} markers ${what}: median ${at(0.5)} ms, 95th percentile ${at(0.95)} ms`)
  }
  return 0
}

await runCommand('Usage: npm run draw-cost', main)
