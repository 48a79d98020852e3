import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { notFound } from '../errors.js'
import { seededRandom } from '../random.js'
import type { Fields } from '../records.js'
import { type Handlers, handler } from '../route.js'
import { readSetting, writeSetting } from '../settings.js'

const HOUR_MS = 60 * 60_000
const SEVERITIES = ['minor', 'moderate', 'severe', 'extreme'] as const

const defaultsOf = (severity: string): Fields => {
  const grave = severity === 'severe' || severity === 'extreme'
  return { severity, enabled: true, showBanner: true, notifyByEmail: grave, triggerEmergency: severity === 'extreme' }
}

/** No weather service to ask: the sky here follows the sun, with a little of its own mood each hour. */
export const weatherAt = (ms: number) => {
  const hour = Math.floor(ms / HOUR_MS)
  const mood = seededRandom(hour)()
  const day = Math.sin(((hour % 24) - 9) * (Math.PI / 12))
  const windSpeed = Math.round(30 + 300 * Math.max(mood - 0.8, 0) + 12 * day) / 10
  return {
    at: new Date(hour * HOUR_MS).toISOString(),
    temperature: Math.round((12 + 6 * day + 2 * mood) * 10) / 10,
    humidity: Math.round(65 - 15 * day + 10 * mood),
    windSpeed,
    condition: mood > 0.75 ? 'rain' : mood > 0.45 ? 'cloudy' : 'clear'
  }
}

const STRONG_WIND = 7

export const weatherRoutes = ({ database, now }: Backend): Handlers => {
  const read = requirePermission('weather', 'read')
  const change = requirePermission('weather', 'update')

  const refresh = async () => {
    const ms = now().getTime()
    const forecast = Array.from({ length: 24 }, (_, hour) => weatherAt(ms + hour * HOUR_MS))
    const report = { fetchedAt: now().toISOString(), conditions: weatherAt(ms), forecast }
    await writeSetting(database, 'weather/report', report, now())
    return report
  }
  /** What was last asked for; asked for anew once it is an hour old. */
  const report = async () => {
    const kept = await readSetting(database, 'weather/report', {
      fetchedAt: '',
      conditions: {},
      forecast: [] as Fields[]
    })
    return now().getTime() - (Date.parse(kept.fetchedAt) || 0) < HOUR_MS ? kept : refresh()
  }
  const severity = (name: string) => readSetting(database, `weather/${name}`, defaultsOf(name))

  return {
    'GET /api/weather/conditions': handler(read, async () => (await report()).conditions),
    'GET /api/weather/forecast': handler(read, async () => (await report()).forecast),
    'GET /api/weather/alerts': handler(read, async () =>
      (await report()).forecast
        .filter(({ windSpeed }) => Number(windSpeed) >= STRONG_WIND)
        .map(({ at, windSpeed }) => ({ at, severity: 'moderate', title: 'Strong wind', windSpeed }))
    ),
    'GET /api/weather/settings': handler(read, () => Promise.all(SEVERITIES.map(severity))),
    'PUT /api/weather/settings/:severity': handler(change, async ({ params: { severity: name = '' }, body }) => {
      if (!SEVERITIES.some((known) => known === name)) throw notFound('severity')
      const changed = { ...(await severity(name)), ...body, severity: name }
      await writeSetting(database, `weather/${name}`, changed, now())
      return changed
    }),
    'POST /api/weather/refresh': handler(change, refresh)
  }
}
