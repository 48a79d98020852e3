import { defineRoutes, get } from './declare.js'

export const activity = defineRoutes({
  domain: 'activity',
  about: 'Activity',
  rows: [get('/api/activity', 'List recent activity')]
})
