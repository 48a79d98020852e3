import { get, type RouteTable } from './declare.js'

export const diagnostics: RouteTable = {
  domain: 'diagnostics',
  about: 'Diagnostics',
  rows: [get('/api/diagnostics/signal-monitor', 'Signals as receivers hear them')]
}
