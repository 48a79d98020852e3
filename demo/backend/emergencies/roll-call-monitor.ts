import type { Logger } from 'pino'
import { RepeatedCheck } from '../repeated-check.js'
import type { World } from '../world.js'
import { activeEmergencies } from './active.js'
import { recordRollCall } from './roll-call.js'

/** Records who becomes safe during emergencies and drills, also while no page is open. */
export class RollCallMonitor extends RepeatedCheck {
  readonly #world: Pick<World, 'database' | 'now'>

  constructor(world: Pick<World, 'database' | 'now'>, log: Logger) {
    super('roll call failed', log)
    this.#world = world
  }

  protected override async update(): Promise<void> {
    for (const emergency of await activeEmergencies(this.#world)) await recordRollCall(this.#world, emergency)
  }
}
