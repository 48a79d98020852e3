import { defineRoutes, get } from './declare.js'

export const context = defineRoutes({
  domain: 'context',
  about: 'Buildings and floors of the signed-in user',
  rows: [
    get('/api/context', 'List the buildings and floors that the user may see'),
    get('/api/context/floor/:floorId', 'Read everything that a floor plan shows')
  ]
})
