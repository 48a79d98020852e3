import { Type } from '@sinclair/typebox'
import { ids } from '../../schemas/ids.js'
import { routeTables } from '../../src/gateway/routes/index.js'
import { defineRoutes, patch, post, type RouteDeclaration } from '../../src/gateway/routes/tables/declare.js'
import { InstructionsSchema } from '../emergency-types.js'

/** Write requests that are not in the gateway's tables. The gateway forwards them unchecked; the backend checks their bodies. */
const ownRoutes = defineRoutes({
  domain: 'demo',
  about: 'Alerts and emergency instructions',
  rows: [
    post(
      '/api/alerts/acknowledge',
      'Acknowledge alerts',
      Type.Object({ ids: ids('The alerts.') }, { $id: 'AlertAcknowledgement', additionalProperties: false })
    ),
    patch('/api/emergency/instructions/:id', 'Change the emergency instructions of a building', InstructionsSchema)
  ]
})

/** The route declarations of the gateway, and those of the demo, by method and path. */
export const declared: ReadonlyMap<string, RouteDeclaration> = new Map(
  [...routeTables, ownRoutes].flatMap(({ rows }) => rows).map((row) => [`${row.method} ${row.path}`, row])
)
