import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { BuildingCreateSchema, BuildingOrderSchema, BuildingUpdateSchema } from '../../../../schemas/buildings.js'
import { defineRoutes, del, get, post, put } from './declare.js'

export const buildings = defineRoutes({
  domain: 'buildings',
  about: 'Buildings',
  rows: [
    get('/api/buildings', 'List buildings'),
    post('/api/buildings', 'Create a building', BuildingCreateSchema),
    get('/api/buildings/:id', 'Read one building'),
    put('/api/buildings/:id', 'Change a building', BuildingUpdateSchema),
    del('/api/buildings/:id', 'Delete a building', ActionNoteSchema),
    put('/api/buildings/order', 'Change the order of buildings', BuildingOrderSchema),
    get('/api/buildings/gateway-health', 'Read the health of the gateways in each building')
  ]
})
