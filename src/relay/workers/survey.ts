import type { MaybePromise } from '../core/broker.js'
import type {
  Cluster,
  Command,
  CommandResult,
  NodeResult,
  SurveyHandlers,
  SurveyName,
  SurveyParams,
  SurveyResult
} from '../core/survey.js'
import { done, type FrameWriter, type IpcChannel, IpcClosed } from './ipc.js'
import { readList, writeList } from './messages.js'

/** On the same machine: who takes longer answers nobody. */
const SURVEY_TIMEOUT_MS = 5000

/** What a worker made of a command. */
type CommandReply = { readonly answer: string } | 'gone' | 'unconfirmed'

/** Where the workers of a relay ask each other. Questions and answers are text that is passed on as it is. */
export class PrimarySurvey {
  readonly #nodes = new Map<string, IpcChannel>()
  readonly #patienceMs: number

  constructor(patienceMs = SURVEY_TIMEOUT_MS) {
    this.#patienceMs = patienceMs
  }

  serve(ipc: IpcChannel): void {
    ipc.onRequest({
      joinFleet: (fields) => {
        const node = fields.text()
        this.#nodes.set(node, ipc)
        this.#tellSize()
        void ipc.closed.then(() => {
          this.#nodes.delete(node)
          this.#tellSize()
        })
        return done
      },
      askFleet: async (fields) => {
        const [survey, params] = [fields.text(), fields.text()]
        const asked = [...this.#nodes].map(async ([node, each]) => ({
          node,
          answer: await this.#ask(each, survey, params)
        }))
        const answered = (await Promise.all(asked)).filter(({ answer }) => answer !== null)
        return (out) => writeList(out, answered, (_, { node, answer }) => out.text(node).text(answer ?? ''))
      },
      applyCommand: async (fields) => {
        const [command, params] = [fields.text(), fields.text()]
        const replies = await Promise.all([...this.#nodes.values()].map((each) => this.#confirm(each, command, params)))
        const isConfirmed = replies.every((reply) => reply !== 'unconfirmed')
        const answers = replies.flatMap((reply) => (typeof reply === 'string' ? [] : [reply.answer]))
        return (out) => writeList(out.byte(isConfirmed ? 1 : 0), answers, (_, answer) => out.text(answer))
      },
      askNode: async (fields) => {
        const [node, survey, params] = [fields.text(), fields.text(), fields.text()]
        const asked = this.#nodes.get(node)
        const answer = asked === undefined ? null : await this.#ask(asked, survey, params)
        return (out) => out.textOrNull(answer)
      }
    })
  }

  /** The clients of a worker that has ended are gone. One that is silent has the command on its link, and applies it later. */
  async #confirm(ipc: IpcChannel, command: string, params: string): Promise<CommandReply> {
    const write = (out: FrameWriter): void => void out.text(command).text(params)
    const asked = ipc.request('question', write, (fields) => ({ answer: fields.text() }))
    const reply = asked.catch((error) => (error instanceof IpcClosed ? 'gone' : 'unconfirmed'))
    return (await withTimeout(this.#patienceMs, reply)) ?? 'unconfirmed'
  }

  /** Null where there is no answer: it failed, it took too long, the worker has ended. */
  #ask(ipc: IpcChannel, survey: string, params: string): Promise<string | null> {
    return withTimeout(
      this.#patienceMs,
      ipc.request(
        'question',
        (out) => out.text(survey).text(params),
        (fields) => fields.text()
      )
    )
  }

  #tellSize(): void {
    for (const ipc of this.#nodes.values()) ipc.send('fleetSize', (out) => out.number(this.#nodes.size))
  }
}

/** What was promised, or null where it fails or takes longer. */
export const withTimeout = async <T>(ms: number, promised: Promise<T>): Promise<T | null> => {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null)
  })
  try {
    return await Promise.race([promised, tooLate])
  } catch {
    return null
  } finally {
    clearTimeout(timer)
  }
}

/** The workers of one relay, who ask each other through the owner. */
export class WorkerCluster implements Cluster {
  readonly #primary: IpcChannel
  #size = 1
  #node = ''
  #answers: SurveyHandlers | null = null

  constructor(primary: IpcChannel) {
    this.#primary = primary
  }

  get size(): number {
    return this.#size
  }

  start(node: string, answers: SurveyHandlers): Promise<void> {
    this.#node = node
    this.#answers = answers
    this.#primary.onMessage({
      fleetSize: (fields) => {
        this.#size = fields.number()
      }
    })
    this.#primary.onRequest({
      question: async (fields) => {
        const [survey, params] = [fields.text() as SurveyName, JSON.parse(fields.text())]
        const answer = JSON.stringify(await answers.handle(survey, params))
        return (out) => out.text(answer)
      }
    })
    return this.#primary.request(
      'joinFleet',
      (out) => out.text(node),
      () => undefined
    )
  }

  async survey<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): Promise<readonly NodeResult<Q>[]> {
    try {
      return await this.#primary.request(
        'askFleet',
        (out) => out.text(survey).text(JSON.stringify(params)),
        (fields) =>
          readList(fields, () => ({ node: fields.text(), result: JSON.parse(fields.text()) as SurveyResult<Q> }))
      )
    } catch {
      // The owner is gone, and this worker goes too.
      return []
    }
  }

  /** A worker that is hung finds the command on its link when it goes on; a link that closes takes its clients along. */
  apply<C extends Command>(command: C, params: SurveyParams<C>): Promise<CommandResult<C>> {
    return this.#primary.request(
      'applyCommand',
      (out) => out.text(command).text(JSON.stringify(params)),
      (fields) => ({
        isConfirmed: fields.byte() === 1,
        results: readList(fields, () => JSON.parse(fields.text()) as SurveyResult<C>)
      })
    )
  }

  surveyNode<Q extends SurveyName>(
    node: string,
    survey: Q,
    params: SurveyParams<Q>
  ): MaybePromise<SurveyResult<Q> | null> {
    if (node === this.#node && this.#answers !== null) return this.#answers.handle(survey, params)
    return this.#askOther(node, survey, params)
  }

  close(): void {}

  async #askOther<Q extends SurveyName>(
    node: string,
    survey: Q,
    params: SurveyParams<Q>
  ): Promise<SurveyResult<Q> | null> {
    try {
      const answer = await this.#primary.request(
        'askNode',
        (out) => out.text(node).text(survey).text(JSON.stringify(params)),
        (fields) => fields.textOrNull()
      )
      return answer === null ? null : (JSON.parse(answer) as SurveyResult<Q>)
    } catch {
      return null
    }
  }
}
