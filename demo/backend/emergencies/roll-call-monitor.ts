import type { Logger } from 'pino'
import { RepeatedCheck } from '../repeated-check.js'
import type { Database, World } from '../world.js'
import { activeEmergencies, lockEmergencies } from './active.js'
import { recordRollCall } from './roll-call.js'

/** Records who becomes safe during emergencies and drills, also while no page is open. */
export class RollCallMonitor extends RepeatedCheck {
  readonly #database: Database
  readonly #now: World['now']

  constructor({ database, now }: { readonly database: Database; readonly now: World['now'] }, log: Logger) {
    super('roll call failed', log)
    this.#database = database
    this.#now = now
  }

  protected override async update(): Promise<void> {
    const active = await activeEmergencies({ database: this.#database })
    if (active.length === 0) return
    await this.#database.transaction(async (database) => {
      // An emergency that ends at the same time must not change afterwards.
      await lockEmergencies({ database })
      for (const emergency of await activeEmergencies({ database }))
        await recordRollCall({ database, now: this.#now }, emergency)
    })
  }
}
