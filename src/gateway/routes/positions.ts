import { get, type RouteTable } from './declare.js'

export const positions: RouteTable = {
  domain: 'positions',
  about: 'Positions',
  rows: [get('/api/positions/history', 'List the past positions of a transmitter')]
}
