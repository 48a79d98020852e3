import { USER_CONNECTION_ADD, USER_RATES_TAKE } from './lease-scripts.js'
import type { Script } from './lua-script.js'
import { MAP_SCRIPTS } from './map-scripts.js'
import { APPEND_COMMAND, CONFIRM_RUN, FIND_ROLLBACK, HEARTBEAT, READ_COMMANDS } from './node-scripts.js'
import { PRESENCE_SCRIPTS } from './presence-scripts.js'
import { PUBLISH_IDEMPOTENT, PUBLISH_TO_MANY, PUBLISH_WITH_HISTORY, READ_HISTORY } from './publish-scripts.js'

/** Loaded on every new connection. */
export const SCRIPTS: readonly Script[] = [
  FIND_ROLLBACK,
  HEARTBEAT,
  CONFIRM_RUN,
  USER_CONNECTION_ADD,
  USER_RATES_TAKE,
  APPEND_COMMAND,
  READ_COMMANDS,
  PUBLISH_WITH_HISTORY,
  PUBLISH_TO_MANY,
  PUBLISH_IDEMPOTENT,
  READ_HISTORY,
  ...PRESENCE_SCRIPTS,
  ...MAP_SCRIPTS
]
