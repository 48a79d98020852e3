import { activity } from './activity.js'
import { assets } from './assets.js'
import { audit } from './audit.js'
import { auth } from './auth.js'
import { battery } from './battery.js'
import { buildings } from './buildings.js'
import { context } from './context.js'
import { dashboard } from './dashboard.js'
import type { RouteTable } from './declare.js'
import { diagnostics } from './diagnostics.js'
import { emergency } from './emergency.js'
import { errorLog } from './error-log.js'
import { floors } from './floors.js'
import { gateways } from './gateways.js'
import { management } from './management.js'
import { personnel } from './personnel.js'
import { phoneBeacon } from './phone-beacon.js'
import { positions } from './positions.js'
import { probes } from './probes.js'
import { realtime } from './realtime.js'
import { receivers } from './receivers.js'
import { transmitters } from './transmitters.js'
import { users } from './users.js'
import { weather } from './weather.js'
import { zones } from './zones.js'

/** The routes of sessions and health, which `GATEWAY_ROUTES` does not replace. */
export const ownTables: readonly RouteTable[] = [auth, probes]

/** All declared routes. Requests to other paths go through the catch-all. */
export const routeTables: readonly RouteTable[] = [
  auth,
  users,
  buildings,
  floors,
  zones,
  receivers,
  personnel,
  assets,
  emergency,
  dashboard,
  battery,
  weather,
  transmitters,
  phoneBeacon,
  audit,
  management,
  context,
  diagnostics,
  gateways,
  positions,
  realtime,
  probes,
  activity,
  errorLog
]
