import { defineRoutes, get } from './declare.js'

export const positions = defineRoutes({
  domain: 'positions',
  about: 'Positions',
  rows: [get('/api/positions/history', 'List the past positions of a transmitter')]
})
