import { download, get, type RouteTable } from './declare.js'

export const audit: RouteTable = {
  domain: 'audit',
  about: 'The audit log of the backend',
  rows: [
    get('/api/audit/logs', 'Audit records'),
    get('/api/audit/summary', 'Audit records, counted'),
    download('/api/audit/export', 'Export audit records')
  ]
}
