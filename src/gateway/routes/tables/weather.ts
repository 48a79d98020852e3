import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { WeatherSeveritySettingsSchema } from '../../../../schemas/weather.js'
import { action, defineRoutes, get, put } from './declare.js'

export const weather = defineRoutes({
  domain: 'weather',
  about: 'Weather and its alerts',
  rows: [
    get('/api/weather/conditions', 'Read the current weather'),
    get('/api/weather/forecast', 'Read the weather forecast'),
    get('/api/weather/alerts', 'List weather alerts'),
    get('/api/weather/settings', 'Read the actions for each severity'),
    put('/api/weather/settings/:severity', 'Change the actions for a severity', WeatherSeveritySettingsSchema),
    action('/api/weather/refresh', 'Refresh the weather data', ActionNoteSchema)
  ]
})
