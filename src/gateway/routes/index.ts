import { activity } from './tables/activity.js'
import { assets } from './tables/assets.js'
import { audit } from './tables/audit.js'
import { auth } from './tables/auth.js'
import { battery } from './tables/battery.js'
import { buildings } from './tables/buildings.js'
import { context } from './tables/context.js'
import { dashboard } from './tables/dashboard.js'
import type { RouteTable } from './tables/declare.js'
import { diagnostics } from './tables/diagnostics.js'
import { emergency } from './tables/emergency.js'
import { errorLog } from './tables/error-log.js'
import { floors } from './tables/floors.js'
import { gateways } from './tables/gateways.js'
import { management } from './tables/management.js'
import { personnel } from './tables/personnel.js'
import { phoneBeacon } from './tables/phone-beacon.js'
import { positions } from './tables/positions.js'
import { probes } from './tables/probes.js'
import { realtime } from './tables/realtime.js'
import { receivers } from './tables/receivers.js'
import { transmitters } from './tables/transmitters.js'
import { users } from './tables/users.js'
import { weather } from './tables/weather.js'
import { zones } from './tables/zones.js'

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
