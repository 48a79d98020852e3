import { ErrorReportSchema } from '../../../../schemas/error-report.js'
import { defineRoutes, post } from './declare.js'

export const errorLog = defineRoutes({
  domain: 'proxy',
  about: 'Error reports of web applications',
  rows: [post('/api/proxy/error-log', 'Report an error of the web application', ErrorReportSchema)]
})
