import { get, local, type RouteTable } from './declare.js'

export const probes: RouteTable = {
  domain: 'health',
  about: 'Whether the gateway, the backend and the database are well',
  rows: [
    local(get('/api/health', 'The process is up')),
    local(get('/api/health/ready', 'The backend can be reached')),
    local(get('/api/health/database', 'The database answers'))
  ]
}
