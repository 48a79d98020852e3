import type { SurveyHandler } from '../../src/relay/core/engine.js'
import { SingleNodeCluster } from '../../src/relay/engine/memory.js'

/** A cluster whose node misses commands when the test says so. */
export class ClusterWithGaps extends SingleNodeCluster {
  missedCommands = (): void => undefined

  override async start(node: string, handler: SurveyHandler, missedCommands?: () => void): Promise<void> {
    await super.start(node, handler)
    if (missedCommands !== undefined) this.missedCommands = missedCommands
  }
}
