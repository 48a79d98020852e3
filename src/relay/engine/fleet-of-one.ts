import type { Answer, Answers, Command, CommandResult, Fleet, NodeAnswer, Params, Question } from '../core/fleet.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'

/** A relay that acts alone: it asks itself. */
export class FleetOfOne implements Fleet {
  readonly size = 1
  #node = ''
  #answers: Answers | null = null

  start(node: string, answers: Answers): void {
    this.#node = node
    this.#answers = answers
  }

  ask<Q extends Question>(question: Q, params: Params<Q>): MaybePromise<readonly NodeAnswer<Q>[]> {
    const node = this.#node
    return this.#answers === null ? [] : after(this.#answers.to(question, params), (answer) => [{ node, answer }])
  }

  apply<C extends Command>(command: C, params: Params<C>): MaybePromise<CommandResult<C>> {
    if (this.#answers === null) return { answers: [], isConfirmed: false }
    return after(this.#answers.to(command, params), (answer) => ({ answers: [answer], isConfirmed: true }))
  }

  askOne<Q extends Question>(node: string, question: Q, params: Params<Q>): MaybePromise<Answer<Q> | null> {
    return node === this.#node && this.#answers !== null ? this.#answers.to(question, params) : null
  }

  close(): void {}
}
