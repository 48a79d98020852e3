import { notFound } from '../errors.js'
import { together } from '../queries.js'
import { seededRandom } from '../random.js'
import { type Handlers, handler } from '../route.js'
import { readSetting, storeSetting } from '../settings.js'
import type { World } from '../world.js'

const HOUR_MS = 60 * 60_000
const SEVERITIES = ['minor', 'moderate', 'severe', 'extreme']
const STRONG_WIND = 7

/** Simulated weather: a daily cycle plus a deterministic variation per hour. */
const weatherAt = (ms: number) => {
  const hour = Math.floor(ms / HOUR_MS)
  const variation = seededRandom(hour)()
  const day = Math.sin(((hour % 24) - 9) * (Math.PI / 12))
  return {
    at: new Date(hour * HOUR_MS).toISOString(),
    temperature: Math.round((12 + 6 * day + 2 * variation) * 10) / 10,
    humidity: Math.round(65 - 15 * day + 10 * variation),
    windSpeed: Math.round(30 + 300 * Math.max(variation - 0.8, 0) + 12 * day) / 10,
    condition: variation > 0.75 ? 'rain' : variation > 0.45 ? 'cloudy' : 'clear'
  }
}

const conditions = ({ now }: World) => weatherAt(now().getTime())

const forecast = ({ now }: World) =>
  Array.from({ length: 24 }, (_, hour) => weatherAt(now().getTime() + hour * HOUR_MS))

const alerts = (world: World) =>
  forecast(world)
    .filter(({ windSpeed }) => windSpeed >= STRONG_WIND)
    .map(({ at, windSpeed }) => ({ at, severity: 'moderate', title: 'Strong wind', windSpeed }))

export const weatherRoutes: Handlers = {
  'GET /api/weather/conditions': handler('weather.read', conditions),
  'GET /api/weather/forecast': handler('weather.read', forecast),
  'GET /api/weather/alerts': handler('weather.read', alerts),
  'GET /api/weather/settings': handler('weather.read', (call) =>
    Promise.all(SEVERITIES.map((name) => readSetting(call, name)))
  ),
  'PUT /api/weather/settings/:severity': handler('weather.update', async (call) => {
    const { severity: name = '' } = call.params
    if (!SEVERITIES.includes(name)) throw notFound('severity')
    return storeSetting(call, name, { ...call.body, severity: name })
  }),
  // The weather is computed on each request, so there is nothing to fetch.
  'POST /api/weather/refresh': handler(
    'weather.update',
    together({ fetchedAt: ({ now }) => now().toISOString(), conditions, forecast })
  )
}
