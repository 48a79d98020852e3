import { download, get, type RouteTable } from './declare.js'

export const audit: RouteTable = {
  domain: 'audit',
  about: 'The audit log of the backend',
  rows: [
    get('/api/audit/logs', 'List audit records'),
    get('/api/audit/summary', 'Count audit records'),
    download('/api/audit/export', 'Export audit records')
  ]
}
