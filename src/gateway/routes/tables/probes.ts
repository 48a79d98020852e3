import { type TProperties, Type } from '@sinclair/typebox'
import { defineRoutes, get, type LocalDocumentation, local } from './declare.js'

const probe = (description: string, responses: LocalDocumentation['responses']): LocalDocumentation => ({
  description,
  responses,
  needsBackend: false
})

const status = (value: string, description: string, others: TProperties = {}) =>
  Type.Object({ status: Type.Literal(value, { description }), ...others })

const up = {
  status: Type.Literal('up', { description: 'Available.' }),
  latencyMs: Type.Integer({ minimum: 0, description: 'The response time in milliseconds.' })
}

const down = (reasons: readonly string[]) => ({
  status: Type.Literal('down', { description: 'Not available.' }),
  reason: Type.Union(
    reasons.map((reason) => Type.Literal(reason)),
    { description: 'The reason.' }
  )
})

const result = (properties: TProperties) => Type.Object(properties, { description: 'The result of the check.' })

const stopping = status('stopping', 'The gateway will stop, but still serves requests.')

const live = probe('Liveness: checks no other service, so that their outages do not cause restarts of the gateway.', {
  200: { description: 'The process is running.', body: status('ok', 'The process is running.') },
  503: { description: 'The gateway will stop.', body: stopping }
})

const ready = probe('Readiness: checks the backend, at most once a second.', {
  200: {
    description: 'The backend is available.',
    body: status('ready', 'The gateway can serve requests.', { backend: result(up) })
  },
  503: {
    description: 'The backend is not available, or the gateway will stop.',
    body: Type.Union([
      status('unavailable', 'The gateway cannot serve requests.', {
        backend: result(down(['refused', 'timeout', 'error']))
      }),
      stopping
    ])
  }
})

const database = probe('Checks the database if one is configured, at most once a second.', {
  200: {
    description: 'The database is available, or none is configured.',
    body: Type.Union([Type.Object(up), status('not configured', 'No database is configured.')])
  },
  503: {
    description: 'The database is not available.',
    body: Type.Object(down(['refused', 'timeout', 'authentication', 'unknown database', 'unreachable', 'error']))
  }
})

export const probes = defineRoutes({
  domain: 'health',
  about: 'Health of the gateway, the backend and the database',
  rows: [
    local(get('/api/health', 'Check that the gateway is running'), live),
    local(get('/api/health/ready', 'Check that the backend is available'), ready),
    local(get('/api/health/database', 'Check that the database is available'), database)
  ]
})
