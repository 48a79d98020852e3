import type { Cluster, SurveyHandlers, SurveyName } from './surveys.js'

/** Parameters and result of each survey, by name, like `Surveys` of the core. */
export type SurveyTable<Name extends PropertyKey> = Readonly<
  Record<Name, { readonly params: unknown; readonly result: unknown }>
>

interface NamedResult<Result> {
  readonly node: string
  readonly result: Result
}

/** The cluster as it sends messages: names are text, parameters and results are JSON. */
interface UntypedCluster {
  survey(survey: string, params: unknown): Promise<readonly NamedResult<unknown>[]>
  surveyNode(node: string, survey: string, params: unknown): Promise<unknown>
}

/**
 * Surveys that a part outside the core defines in its own table. Their names must differ from those of the core. Nodes
 * handle a survey with the types of its table, which are therefore the types of the messages.
 */
export class SurveyExtension<Table extends SurveyTable<keyof Table>> {
  readonly #cluster: UntypedCluster
  readonly #handlers: SurveyHandlers

  constructor(cluster: Cluster, handlers: SurveyHandlers) {
    this.#cluster = cluster
    this.#handlers = handlers
  }

  /** Sets the handler of this node. */
  handle<Name extends keyof Table & string>(
    survey: Name,
    handler: (params: Table[Name]['params']) => Table[Name]['result'] | Promise<Table[Name]['result']>
  ): void {
    // Handlers are found by name, and the core has none of this name.
    this.#handlers.set(survey as string as SurveyName, handler as () => never)
  }

  /** Surveys every node, including this one. Nodes that fail or time out are omitted from the result. */
  async survey<Name extends keyof Table & string>(
    survey: Name,
    params: Table[Name]['params']
  ): Promise<readonly NamedResult<Table[Name]['result']>[]> {
    return this.#cluster.survey(survey, params)
  }

  /** Surveys one node; null if there is no such node or it does not respond. */
  async surveyNode<Name extends keyof Table & string>(
    node: string,
    survey: Name,
    params: Table[Name]['params']
  ): Promise<Table[Name]['result'] | null> {
    return this.#cluster.surveyNode(node, survey, params)
  }
}
