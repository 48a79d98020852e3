import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { ZoneCreateSchema, ZoneUpdateSchema } from '../../../../schemas/zones.js'
import { defineRoutes, del, get, post, put } from './declare.js'

export const zones = defineRoutes({
  domain: 'zones',
  about: 'Zones on floors',
  rows: [
    get('/api/zones', 'List zones'),
    post('/api/zones', 'Create a zone', ZoneCreateSchema),
    get('/api/zones/:id', 'Read one zone'),
    put('/api/zones/:id', 'Change a zone', ZoneUpdateSchema),
    del('/api/zones/:id', 'Delete a zone', ActionNoteSchema),
    get('/api/zones/emergency', 'List emergency zones')
  ]
})
