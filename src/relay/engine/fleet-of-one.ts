import type { Answer, Answers, Fleet, NodeAnswer, Params, Question } from '../core/fleet.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'

/** A relay that acts alone: it asks itself. */
export class FleetOfOne implements Fleet {
  readonly size = 1
  readonly isWhole: boolean = true
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

  askOne<Q extends Question>(node: string, question: Q, params: Params<Q>): MaybePromise<Answer<Q> | null> {
    return node === this.#node && this.#answers !== null ? this.#answers.to(question, params) : null
  }

  close(): void {}
}
