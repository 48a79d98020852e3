import type { Cluster, CommandResult, NodeResult, SurveyHandler } from './engine.js'
import type { MaybePromise } from './maybe-promise.js'

// A cluster is a set of relay nodes that share an engine. A node knows only its own connections, so operations on
// connections are sent to all nodes as surveys: those of the core are in `node-requests.ts`.

/** Parameters and result of each survey, by name. */
export type SurveyTable<Name extends PropertyKey> = Readonly<
  Record<Name, { readonly params: unknown; readonly result: unknown }>
>

/** The surveys that this node can respond to. The core and the operators' page add theirs. */
export class SurveyHandlers implements SurveyHandler {
  readonly #handlers = new Map<string, (params: unknown) => unknown>()

  set(survey: string, handler: (params: unknown) => unknown): void {
    this.#handlers.set(survey, handler)
  }

  async handle(survey: string, params: unknown): Promise<unknown> {
    const handler = this.#handlers.get(survey)
    // A node with a newer version may send surveys that this version does not have.
    if (handler === undefined) throw new Error(`unknown survey ${survey}`)
    return handler(params)
  }
}

/**
 * The surveys of one table, with its types. Nodes handle a survey with the types of its table, so the messages have the same
 * types. The names of different tables must differ.
 */
export class Surveys<Table extends SurveyTable<keyof Table>> {
  readonly #cluster: Cluster
  readonly #handlers: SurveyHandlers

  constructor(cluster: Cluster, handlers: SurveyHandlers) {
    this.#cluster = cluster
    this.#handlers = handlers
  }

  /** Sets the handler of this node. */
  handle<Name extends keyof Table & string>(
    survey: Name,
    handler: (params: Table[Name]['params']) => MaybePromise<Table[Name]['result']>
  ): void {
    this.#handlers.set(survey, handler)
  }

  /** Surveys every node, including this one. Nodes that fail or time out are omitted from the result. */
  survey<Name extends keyof Table & string>(
    survey: Name,
    params: Table[Name]['params']
  ): Promise<readonly NodeResult<Table[Name]['result']>[]> {
    return this.#cluster.survey(survey, params)
  }

  /** Applies a command at every node, including this one. */
  apply<Name extends keyof Table & string>(
    command: Name,
    params: Table[Name]['params']
  ): Promise<CommandResult<Table[Name]['result']>> {
    return this.#cluster.apply(command, params)
  }

  /** Surveys one node; null if there is no such node or it does not respond. */
  surveyNode<Name extends keyof Table & string>(
    node: string,
    survey: Name,
    params: Table[Name]['params']
  ): Promise<Table[Name]['result'] | null> {
    return this.#cluster.surveyNode(node, survey, params)
  }
}
