import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { AssetCreateSchema, AssetUpdateSchema } from '../../../../schemas/assets.js'
import { defineRoutes, del, get, post, put } from './declare.js'

export const assets = defineRoutes({
  domain: 'assets',
  about: 'Equipment with beacons',
  rows: [
    get('/api/assets', 'List assets'),
    post('/api/assets', 'Create an asset', AssetCreateSchema),
    get('/api/assets/:id', 'Read one asset'),
    put('/api/assets/:id', 'Change an asset', AssetUpdateSchema),
    del('/api/assets/:id', 'Delete an asset', ActionNoteSchema),
    get('/api/assets/:id/history', 'List the past positions of an asset')
  ]
})
