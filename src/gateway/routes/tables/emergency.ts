import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import {
  EmergencyContactCreateSchema,
  EmergencyContactUpdateSchema,
  EmergencyCreateSchema,
  EmergencyTriggerSchema,
  EmergencyUpdateSchema
} from '../../../../schemas/emergency.js'
import { defineRoutes, del, get, post, put } from './declare.js'

export const emergency = defineRoutes({
  domain: 'emergency',
  about: 'Emergencies, muster and contacts',
  rows: [
    get('/api/emergency', 'List emergencies'),
    post('/api/emergency', 'Create an emergency', EmergencyCreateSchema),
    get('/api/emergency/:id', 'Read one emergency'),
    put('/api/emergency/:id', 'Change an emergency', EmergencyUpdateSchema),
    post('/api/emergency/trigger', 'Trigger an emergency', EmergencyTriggerSchema),
    get('/api/emergency/active', 'Read the active emergency'),
    get('/api/emergency/events', 'List emergency events'),
    get('/api/emergency/muster', 'Read the muster status of personnel'),
    get('/api/emergency/contacts', 'List emergency contacts'),
    post('/api/emergency/contacts', 'Create an emergency contact', EmergencyContactCreateSchema),
    put('/api/emergency/contacts/:contactId', 'Change an emergency contact', EmergencyContactUpdateSchema),
    del('/api/emergency/contacts/:contactId', 'Delete an emergency contact', ActionNoteSchema)
  ]
})
