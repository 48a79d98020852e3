import { defineRoutes, get } from './declare.js'

export const dashboard = defineRoutes({
  domain: 'dashboard',
  about: 'Figures for the dashboard',
  rows: [
    get('/api/dashboard', 'Read the whole dashboard'),
    get('/api/dashboard/summary', 'Read the summary figures'),
    get('/api/dashboard/buildings', 'Read the figures by building'),
    get('/api/dashboard/floors', 'Read the figures by floor'),
    get('/api/dashboard/floors/:id', 'Read the figures of one floor'),
    get('/api/dashboard/departments', 'Read the figures by department'),
    get('/api/dashboard/personnel', 'Read the figures of personnel')
  ]
})
