import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import {
  PersonnelBatchDeleteSchema,
  PersonnelBulkSchema,
  PersonnelCreateSchema,
  PersonnelUpdateSchema
} from '../../../../schemas/personnel.js'
import { defineRoutes, del, download, get, post, put, upload } from './declare.js'
import { UploadFormSchema } from './upload-form.js'

export const personnel = defineRoutes({
  domain: 'personnel',
  about: 'People and their beacons',
  rows: [
    get('/api/personnel', 'List personnel'),
    post('/api/personnel', 'Create a person', PersonnelCreateSchema),
    put('/api/personnel/:id', 'Change a person', PersonnelUpdateSchema),
    del('/api/personnel/:id', 'Delete a person', ActionNoteSchema),
    upload('/api/personnel/:id/photo', 'Upload a photo', UploadFormSchema),
    del('/api/personnel/:id/photo', 'Delete a photo', ActionNoteSchema),
    get('/api/personnel/:id/beacons', 'List the beacons of a person'),
    download('/api/personnel/export/csv', 'Export personnel as CSV'),
    download('/api/personnel/export/pdf', 'Export personnel as PDF'),
    upload('/api/personnel/import', 'Import personnel from CSV', UploadFormSchema),
    post('/api/personnel/batch-delete', 'Delete many people', PersonnelBatchDeleteSchema),
    post('/api/personnel/bulk-activate', 'Activate many people', PersonnelBulkSchema),
    post('/api/personnel/bulk-deactivate', 'Deactivate many people', PersonnelBulkSchema)
  ]
})
