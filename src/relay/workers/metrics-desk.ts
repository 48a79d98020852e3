import { Counter, Registry } from 'prom-client'
import { collectProcessMetrics } from '../../shared/process-metrics.js'
import { within } from './fleet-desk.js'
import { done, type Link } from './link.js'
import { MergedMetrics } from './merged-metrics.js'

/** Of who takes longer, what it said last counts. */
const PATIENCE_MS = 5000
const OWNER = 'owner'

/** Puts the numbers of all processes together, whichever of them is asked. */
export class MetricsDesk {
  readonly #registry = new Registry()
  readonly #replacements: Counter
  readonly #merged = new MergedMetrics()
  readonly #links = new Map<string, Link>()

  constructor() {
    collectProcessMetrics(this.#registry)
    this.#replacements = new Counter({
      name: 'relay_worker_replacements_total',
      help: 'Workers that have ended while the relay went on.',
      registers: [this.#registry]
    })
  }

  serve(link: Link, number: number): void {
    const process = String(number)
    this.#links.set(process, link)
    link.answers({
      readMetrics: async () => {
        const text = await this.#read()
        return (out) => out.text(text)
      }
    })
    void link.closed.then(() => {
      this.#replacements.inc()
      this.#merged.end(process)
      if (this.#links.get(process) === link) this.#links.delete(process)
    })
  }

  async #read(): Promise<string> {
    const asked = [...this.#links].map(async ([process, link]) => {
      const text = await within(
        PATIENCE_MS,
        link.ask('ownMetrics', done, (fields) => fields.text())
      )
      return [process, text] as const
    })
    const texts = [...(await Promise.all(asked)), [OWNER, await this.#registry.metrics()] as const]
    // One may have ended meanwhile, and is counted among those that have.
    return this.#merged.text(new Map(texts.filter(([process]) => process === OWNER || this.#links.has(process))))
  }
}
