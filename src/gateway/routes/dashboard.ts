import { get, type RouteTable } from './declare.js'

export const dashboard: RouteTable = {
  domain: 'dashboard',
  about: 'Figures for the dashboard',
  rows: [
    get('/api/dashboard', 'Everything on the dashboard'),
    get('/api/dashboard/summary', 'The figures on top'),
    get('/api/dashboard/buildings', 'Figures by building'),
    get('/api/dashboard/floors', 'Figures by floor'),
    get('/api/dashboard/floors/:id', 'Figures of one floor'),
    get('/api/dashboard/departments', 'Figures by department'),
    get('/api/dashboard/personnel', 'Figures of personnel')
  ]
}
