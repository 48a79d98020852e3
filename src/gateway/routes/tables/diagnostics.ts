import { defineRoutes, get } from './declare.js'

export const diagnostics = defineRoutes({
  domain: 'diagnostics',
  about: 'Diagnostics',
  rows: [get('/api/diagnostics/signal-monitor', 'List the signals that receivers measure')]
})
