import t from 'tap'
import { invertLightness, isDark, isLight } from '../../web/floor-plan/plan-tone.js'

const pixels = (...colours: readonly (readonly number[])[]): Uint8ClampedArray => new Uint8ClampedArray(colours.flat())
const [WHITE, BLACK, ORANGE, CLEAR] = [
  [255, 255, 255, 255],
  [0, 0, 0, 255],
  [255, 136, 0, 255],
  [0, 0, 0, 0]
] as const

t.test('a plan on white or transparent paper is light', async (t) => {
  t.equal(isLight(pixels(WHITE, WHITE, WHITE, BLACK)), true)
  t.equal(isLight(pixels(CLEAR, CLEAR, CLEAR, BLACK)), true)
  t.equal(isLight(pixels(BLACK, BLACK, BLACK, WHITE)), false)
})

t.test('an inverted plan has light lines on a dark ground, and keeps hue and transparency', async (t) => {
  const plan = pixels(WHITE, BLACK, ORANGE, CLEAR, [250, 230, 210, 255])
  invertLightness(plan)
  t.same([...plan], [...BLACK.slice(0, 3), 255, ...WHITE, ...ORANGE, 255, 255, 255, 0, 45, 25, 5, 255])
})

t.test('the theme is dark if its surface is', async (t) => {
  t.equal(isDark('rgb(25, 33, 37)'), true)
  t.equal(isDark('rgb(255, 255, 255)'), false)
})
