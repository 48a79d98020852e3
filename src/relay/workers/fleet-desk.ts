import type { FrameWriter } from './frame-writer.js'
import { done, type Link, LinkBroken } from './link.js'
import { writeList } from './messages.js'

/** On the same machine: who takes longer answers nobody. */
const PATIENCE_MS = 5000

/** What a worker made of a command. */
type CommandReply = { readonly answer: string } | 'gone' | 'unconfirmed'

/** Where the workers of a relay ask each other. Questions and answers are text that is passed on as it is. */
export class FleetDesk {
  readonly #nodes = new Map<string, Link>()
  readonly #patienceMs: number

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs
  }

  serve(link: Link): void {
    link.answers({
      joinFleet: (fields) => {
        const node = fields.text()
        this.#nodes.set(node, link)
        this.#tellSize()
        void link.closed.then(() => {
          this.#nodes.delete(node)
          this.#tellSize()
        })
        return done
      },
      askFleet: async (fields) => {
        const [question, params] = [fields.text(), fields.text()]
        const asked = [...this.#nodes].map(async ([node, each]) => ({
          node,
          answer: await this.#ask(each, question, params)
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
        const [node, question, params] = [fields.text(), fields.text(), fields.text()]
        const asked = this.#nodes.get(node)
        const answer = asked === undefined ? null : await this.#ask(asked, question, params)
        return (out) => out.textOrNull(answer)
      }
    })
  }

  /** The clients of a worker that has ended are gone. One that is silent has the command on its link, and applies it later. */
  async #confirm(link: Link, command: string, params: string): Promise<CommandReply> {
    const write = (out: FrameWriter): void => void out.text(command).text(params)
    const asked = link.ask('question', write, (fields) => ({ answer: fields.text() }))
    const reply = asked.catch((error) => (error instanceof LinkBroken ? 'gone' : 'unconfirmed'))
    return (await within(this.#patienceMs, reply)) ?? 'unconfirmed'
  }

  /** Null where there is no answer: it failed, it took too long, the worker has ended. */
  #ask(link: Link, question: string, params: string): Promise<string | null> {
    return within(
      this.#patienceMs,
      link.ask(
        'question',
        (out) => out.text(question).text(params),
        (fields) => fields.text()
      )
    )
  }

  #tellSize(): void {
    for (const link of this.#nodes.values()) link.tell('fleetSize', (out) => out.number(this.#nodes.size))
  }
}

/** What was promised, or null where it fails or takes longer. */
export const within = async <T>(ms: number, promised: Promise<T>): Promise<T | null> => {
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
