import { get, type RouteTable } from './declare.js'

export const context: RouteTable = {
  domain: 'context',
  about: 'Where the user is',
  rows: [
    get('/api/context', 'Buildings and floors that the user may see'),
    get('/api/context/floor/:floorId', 'All that a floor plan shows')
  ]
}
