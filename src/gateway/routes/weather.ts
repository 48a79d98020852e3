import { ActionNoteSchema } from '../../../schemas/action-note.js'
import { WeatherSeveritySettingsSchema } from '../../../schemas/weather.js'
import { action, get, put, type RouteTable } from './declare.js'

export const weather: RouteTable = {
  domain: 'weather',
  about: 'Weather and its alerts',
  rows: [
    get('/api/weather/conditions', 'Weather now'),
    get('/api/weather/forecast', 'Weather to come'),
    get('/api/weather/alerts', 'Weather alerts'),
    get('/api/weather/settings', 'What is done at which severity'),
    put('/api/weather/settings/:severity', 'Change what is done at a severity', WeatherSeveritySettingsSchema),
    action('/api/weather/refresh', 'Ask for the weather anew', ActionNoteSchema)
  ]
}
