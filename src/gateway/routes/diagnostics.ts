import { get, type RouteTable } from './declare.js'

export const diagnostics: RouteTable = {
  domain: 'diagnostics',
  about: 'Diagnostics',
  rows: [get('/api/diagnostics/signal-monitor', 'List the signals that receivers measure')]
}
