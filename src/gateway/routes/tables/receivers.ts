import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { ReceiverBulkSchema, ReceiverCreateSchema, ReceiverUpdateSchema } from '../../../../schemas/receivers.js'
import { defineRoutes, del, get, post, put } from './declare.js'

export const receivers = defineRoutes({
  domain: 'receivers',
  about: 'Receivers of beacon signals',
  rows: [
    get('/api/receivers', 'List receivers'),
    post('/api/receivers', 'Create a receiver', ReceiverCreateSchema),
    get('/api/receivers/:id', 'Read one receiver'),
    put('/api/receivers/:id', 'Change a receiver', ReceiverUpdateSchema),
    del('/api/receivers/:id', 'Delete a receiver', ActionNoteSchema),
    post('/api/receivers/bulk', 'Create or change many receivers', ReceiverBulkSchema),
    get('/api/receivers/discover', 'List unregistered receivers')
  ]
})
