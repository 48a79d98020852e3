/** Runs the surveys and commands of other nodes at this node. Rejects a name that this version does not have. */
export interface SurveyHandler {
  handle(survey: string, params: unknown): Promise<unknown>
}

export interface NodeResult<Result = unknown> {
  readonly node: string
  readonly result: Result
}

export interface CommandResult<Result = unknown> {
  /** Results of the nodes that have applied the command. */
  readonly results: readonly Result[]
  /** Whether every live node has applied it. If not, the cluster retries until each node has applied it or has left. */
  readonly isConfirmed: boolean
}

/**
 * The nodes that share the engine. It carries surveys and commands between them: a name, parameters and a result, both JSON.
 * The core gives them types (`surveys.ts`).
 */
export interface Cluster {
  /** Number of nodes, including this one. */
  readonly size: number
  /**
   * Called once, before any survey. From then on other nodes can survey this one. `missedCommands` is called if this node
   * was disconnected for so long that it has missed commands.
   */
  start(node: string, handler: SurveyHandler, missedCommands: () => void): Promise<void>
  /** Surveys every node, including this one. Nodes that fail or time out are omitted from the result. */
  survey(survey: string, params: unknown): Promise<readonly NodeResult[]>
  /** Applies a command exactly once at every node, including this one. Fails if it cannot be applied anywhere. */
  apply(command: string, params: unknown): Promise<CommandResult>
  /** Surveys one node; null if there is no such node or it does not respond. */
  surveyNode(node: string, survey: string, params: unknown): Promise<unknown>
  /** Whether the node has joined and not left. Such a node may still be too busy to respond to a survey. */
  hasNode(node: string): Promise<boolean>
  close(): Promise<void>
}
