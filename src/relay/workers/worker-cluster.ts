import { withTimeout } from '../../shared/with-timeout.js'
import type { Cluster, CommandResult, NodeResult, SurveyHandler } from '../core/engine.js'
import type { FrameWriter } from './frames.js'
import { IpcClosed, type IpcConnection, NO_FIELDS } from './ipc.js'
import { readList, writeList } from './messages.js'

/** A worker on the same machine that takes longer is suspended or overloaded. */
const SURVEY_TIMEOUT_MS = 5000

/** The outcome of a command at one worker. */
type WorkerOutcome = { readonly result: string } | 'exited' | 'unconfirmed'

/** The primary's side: passes surveys and commands on to all workers. Parameters and results are passed on as JSON text. */
export class PrimarySurvey {
  readonly #workers = new Map<string, IpcConnection>()
  readonly #timeoutMs: number

  constructor(timeoutMs = SURVEY_TIMEOUT_MS) {
    this.#timeoutMs = timeoutMs
  }

  serve(ipc: IpcConnection): void {
    ipc.onRequest({
      joinCluster: (fields) => {
        const node = fields.text()
        this.#workers.set(node, ipc)
        this.#sendSize()
        void ipc.closed.then(() => {
          this.#workers.delete(node)
          this.#sendSize()
        })
        return NO_FIELDS
      },
      survey: async (fields) => {
        const [survey, params] = [fields.text(), fields.text()]
        const results = [...this.#workers].map(async ([node, worker]) => ({
          node,
          result: await this.#survey(worker, survey, params)
        }))
        const received = (await Promise.all(results)).filter(({ result }) => result !== null)
        return (out) => writeList(out, received, (_, { node, result }) => out.text(node).text(result ?? ''))
      },
      applyCommand: async (fields) => {
        const [command, params] = [fields.text(), fields.text()]
        const workers = [...this.#workers.values()]
        const outcomes = await Promise.all(workers.map((worker) => this.#apply(worker, command, params)))
        const isConfirmed = outcomes.every((outcome) => outcome !== 'unconfirmed')
        const texts = outcomes.flatMap((outcome) => (typeof outcome === 'string' ? [] : [outcome.result]))
        return (out) => writeList(out.byte(isConfirmed ? 1 : 0), texts, (_, text) => out.text(text))
      },
      surveyNode: async (fields) => {
        const [node, survey, params] = [fields.text(), fields.text(), fields.text()]
        const worker = this.#workers.get(node)
        const result = worker === undefined ? null : await this.#survey(worker, survey, params)
        return (out) => out.textOrNull(result)
      },
      hasNode: (fields) => {
        const isJoined = this.#workers.has(fields.text())
        return (out) => void out.byte(isJoined ? 1 : 0)
      }
    })
  }

  /** A worker that has exited has no clients. A suspended worker has the command in its IPC connection and applies it later. */
  async #apply(worker: IpcConnection, command: string, params: string): Promise<WorkerOutcome> {
    const write = (out: FrameWriter): void => void out.text(command).text(params)
    const applied = worker.request('handleSurvey', write, (fields) => ({ result: fields.text() }))
    const outcome = applied.catch((error) => (error instanceof IpcClosed ? 'exited' : 'unconfirmed'))
    return (await withTimeout(this.#timeoutMs, outcome)) ?? 'unconfirmed'
  }

  /** Null if the survey failed or timed out at the worker, or the worker has exited. */
  #survey(worker: IpcConnection, survey: string, params: string): Promise<string | null> {
    return withTimeout(
      this.#timeoutMs,
      worker.request(
        'handleSurvey',
        (out) => out.text(survey).text(params),
        (fields) => fields.text()
      )
    )
  }

  #sendSize(): void {
    for (const worker of this.#workers.values()) worker.send('clusterSize', (out) => out.number(this.#workers.size))
  }
}

/** A worker's side: the workers of one relay, which send surveys and commands to each other through the primary. */
export class WorkerCluster implements Cluster {
  readonly #primary: IpcConnection
  #size = 1
  #node = ''
  #handler: SurveyHandler | null = null

  constructor(primary: IpcConnection) {
    this.#primary = primary
  }

  get size(): number {
    return this.#size
  }

  start(node: string, handler: SurveyHandler): Promise<void> {
    this.#node = node
    this.#handler = handler
    this.#primary.onMessage({
      clusterSize: (fields) => {
        this.#size = fields.number()
      }
    })
    this.#primary.onRequest({
      handleSurvey: async (fields) => {
        const [survey, params] = [fields.text(), JSON.parse(fields.text())]
        const result = JSON.stringify(await handler.handle(survey, params))
        return (out) => out.text(result)
      }
    })
    return this.#primary.request(
      'joinCluster',
      (out) => out.text(node),
      () => undefined
    )
  }

  async survey(survey: string, params: unknown): Promise<readonly NodeResult[]> {
    try {
      return await this.#primary.request(
        'survey',
        (out) => out.text(survey).text(JSON.stringify(params)),
        (fields) => readList(fields, () => ({ node: fields.text(), result: JSON.parse(fields.text()) }))
      )
    } catch {
      // The primary has ended, and this worker is about to exit.
      return []
    }
  }

  apply(command: string, params: unknown): Promise<CommandResult> {
    return this.#primary.request(
      'applyCommand',
      (out) => out.text(command).text(JSON.stringify(params)),
      (fields) => ({
        isConfirmed: fields.byte() === 1,
        results: readList(fields, () => JSON.parse(fields.text()))
      })
    )
  }

  async surveyNode(node: string, survey: string, params: unknown): Promise<unknown> {
    if (node === this.#node && this.#handler !== null) return this.#handler.handle(survey, params)
    try {
      return await this.#primary.request(
        'surveyNode',
        (out) => out.text(node).text(survey).text(JSON.stringify(params)),
        (fields) => (fields.byte() === 0 ? null : JSON.parse(fields.text()))
      )
    } catch {
      return null
    }
  }

  hasNode(node: string): Promise<boolean> {
    return this.#primary.request(
      'hasNode',
      (out) => out.text(node),
      (fields) => fields.byte() === 1
    )
  }

  async close(): Promise<void> {}
}
