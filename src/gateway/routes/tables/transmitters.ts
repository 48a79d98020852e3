import {
  TransmitterAssignSchema,
  TransmitterBulkSchema,
  TransmitterCreateSchema,
  TransmitterPatchSchema,
  TransmitterUpdateSchema
} from '../../../../schemas/transmitters.js'
import { defineRoutes, get, patch, post, put } from './declare.js'

export const transmitters = defineRoutes({
  domain: 'transmitters',
  about: 'Beacons that people and things carry',
  rows: [
    get('/api/transmitters', 'List transmitters'),
    post('/api/transmitters', 'Create a transmitter', TransmitterCreateSchema),
    get('/api/transmitters/:id', 'Read one transmitter'),
    put('/api/transmitters/:id', 'Replace a transmitter', TransmitterUpdateSchema),
    patch('/api/transmitters/:id', 'Change a transmitter', TransmitterPatchSchema),
    post('/api/transmitters/assign', 'Assign a transmitter to a person or an asset', TransmitterAssignSchema),
    post('/api/transmitters/bulk', 'Create or change many transmitters', TransmitterBulkSchema),
    get('/api/transmitters/unassigned', 'List unassigned transmitters')
  ]
})
