import { CountedAdmission } from '../edge/admission.js'
import type { Link } from './link.js'
import { REFUSALS } from './shared-admission.js'

/** Counts the connections of all workers. Those of a worker that has ended are gone with it. */
export class AdmissionDesk {
  readonly #admission: CountedAdmission

  constructor(monotonicMs: () => number) {
    this.#admission = new CountedAdmission(monotonicMs)
  }

  serve(link: Link): void {
    const entered = new Map<string, number>()
    const note = (address: string, change: 1 | -1): void => {
      const count = (entered.get(address) ?? 0) + change
      if (count > 0) entered.set(address, count)
      else entered.delete(address)
    }
    link.answers({
      enter: (fields) => {
        const address = fields.text()
        const refusal = this.#admission.enter(address, {
          connectionLimit: fields.number(),
          connectionsPerAddress: fields.number(),
          connectionRateLimit: fields.number()
        })
        if (refusal === null) note(address, 1)
        return (out) => out.byte(REFUSALS.indexOf(refusal))
      }
    })
    link.hears({
      entered: (fields) => {
        const address = fields.text()
        this.#admission.count(address)
        note(address, 1)
      },
      leave: (fields) => {
        const address = fields.text()
        this.#admission.leave(address)
        note(address, -1)
      }
    })
    void link.closed.then(() => {
      for (const [address, count] of entered) for (let left = 0; left < count; left++) this.#admission.leave(address)
    })
  }
}
