import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import {
  FloorCalibrationAcceptSchema,
  FloorCalibrationSchema,
  FloorCreateSchema,
  FloorUpdateSchema
} from '../../../../schemas/floors.js'
import { defineRoutes, del, post, put, upload } from './declare.js'
import { UploadFormSchema } from './upload-form.js'

export const floors = defineRoutes({
  domain: 'floors',
  about: 'Floors, their plans and calibration',
  rows: [
    post('/api/floors', 'Create a floor', FloorCreateSchema),
    put('/api/floors/:id', 'Change a floor', FloorUpdateSchema),
    del('/api/floors/:id', 'Delete a floor', ActionNoteSchema),
    upload('/api/floors/:floorId/upload', 'Upload a floor plan', UploadFormSchema),
    post('/api/floors/:floorId/calibrate', 'Calculate a calibration', FloorCalibrationSchema),
    post('/api/floors/:floorId/calibrate/accept', 'Accept a calibration', FloorCalibrationAcceptSchema)
  ]
})
