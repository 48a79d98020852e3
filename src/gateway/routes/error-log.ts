import { ErrorReportSchema } from '../../../schemas/error-report.js'
import { post, type RouteTable } from './declare.js'

export const errorLog: RouteTable = {
  domain: 'proxy',
  about: 'Error reports of pages',
  rows: [post('/api/proxy/error-log', 'Report an error of the page', ErrorReportSchema)]
}
