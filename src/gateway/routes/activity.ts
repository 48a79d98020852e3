import { get, type RouteTable } from './declare.js'

export const activity: RouteTable = {
  domain: 'activity',
  about: 'Activity',
  rows: [get('/api/activity', 'List recent activity')]
}
