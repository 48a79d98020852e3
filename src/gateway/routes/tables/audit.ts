import { defineRoutes, download, get } from './declare.js'

export const audit = defineRoutes({
  domain: 'audit',
  about: 'The audit log of the backend',
  rows: [
    get('/api/audit/logs', 'List audit records'),
    get('/api/audit/summary', 'Count audit records'),
    download('/api/audit/export', 'Export audit records')
  ]
})
