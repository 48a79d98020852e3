import type { Answer, Answers, Command, CommandResult, Fleet, NodeAnswer, Params, Question } from '../core/fleet.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import type { Link } from './link.js'
import { readList } from './messages.js'

/** The workers of one relay, who ask each other through the owner. */
export class WorkerFleet implements Fleet {
  readonly #owner: Link
  #size = 1
  #node = ''
  #answers: Answers | null = null

  constructor(owner: Link) {
    this.#owner = owner
  }

  get size(): number {
    return this.#size
  }

  start(node: string, answers: Answers): Promise<void> {
    this.#node = node
    this.#answers = answers
    this.#owner.hears({
      fleetSize: (fields) => {
        this.#size = fields.number()
      }
    })
    this.#owner.answers({
      question: async (fields) => {
        const [question, params] = [fields.text() as Question, JSON.parse(fields.text())]
        const answer = JSON.stringify(await answers.to(question, params))
        return (out) => out.text(answer)
      }
    })
    return this.#owner.ask(
      'joinFleet',
      (out) => out.text(node),
      () => undefined
    )
  }

  async ask<Q extends Question>(question: Q, params: Params<Q>): Promise<readonly NodeAnswer<Q>[]> {
    try {
      return await this.#owner.ask(
        'askFleet',
        (out) => out.text(question).text(JSON.stringify(params)),
        (fields) => readList(fields, () => ({ node: fields.text(), answer: JSON.parse(fields.text()) as Answer<Q> }))
      )
    } catch {
      // The owner is gone, and this worker goes too.
      return []
    }
  }

  /** A worker that is hung finds the command on its link when it goes on; a link that closes takes its clients along. */
  apply<C extends Command>(command: C, params: Params<C>): Promise<CommandResult<C>> {
    return this.#owner.ask(
      'applyCommand',
      (out) => out.text(command).text(JSON.stringify(params)),
      (fields) => ({
        isConfirmed: fields.byte() === 1,
        answers: readList(fields, () => JSON.parse(fields.text()) as Answer<C>)
      })
    )
  }

  askOne<Q extends Question>(node: string, question: Q, params: Params<Q>): MaybePromise<Answer<Q> | null> {
    if (node === this.#node && this.#answers !== null) return this.#answers.to(question, params)
    return this.#askOther(node, question, params)
  }

  close(): void {}

  async #askOther<Q extends Question>(node: string, question: Q, params: Params<Q>): Promise<Answer<Q> | null> {
    try {
      const answer = await this.#owner.ask(
        'askNode',
        (out) => out.text(node).text(question).text(JSON.stringify(params)),
        (fields) => fields.textOrNull()
      )
      return answer === null ? null : (JSON.parse(answer) as Answer<Q>)
    } catch {
      return null
    }
  }
}
