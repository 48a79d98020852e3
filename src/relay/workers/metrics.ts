import { Counter, Registry } from 'prom-client'
import { collectProcessMetrics } from '../../shared/process-metrics.js'
import { EMPTY_REPLY, type IpcChannel } from './ipc.js'
import { withTimeout } from './survey.js'

/** Samples of one name, as they stand in the text format of Prometheus. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: string
  /** By name and labels. */
  readonly samples: ReadonlyMap<string, number>
}

const HELP = '# HELP '
const TYPE = '# TYPE '

/** Reads what a process of this relay has written. */
export const parseMetrics = (text: string): readonly Family[] => {
  const families: { name: string; help: string; type: string; samples: Map<string, number> }[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith(HELP)) {
      const [name, help] = nameAndRest(line.slice(HELP.length))
      families.push({ name, help, type: 'untyped', samples: new Map() })
      continue
    }
    const family = families[families.length - 1]
    if (family === undefined || line === '') continue
    if (line.startsWith(TYPE)) [, family.type] = nameAndRest(line.slice(TYPE.length))
    else if (!line.startsWith('#')) {
      // Labels may hold spaces; the value is behind the last one.
      const space = line.lastIndexOf(' ')
      family.samples.set(line.slice(0, space), Number(line.slice(space + 1)))
    }
  }
  return families
}

export const metricsText = (families: Iterable<Family>): string =>
  [...families]
    .map(({ name, help, type, samples }) => {
      const lines = [...samples].map(([sample, value]) => `${sample} ${value}\n`)
      return `${HELP}${name} ${help}\n${TYPE}${name} ${type}\n${lines.join('')}\n`
    })
    .join('')

const nameAndRest = (text: string): [name: string, rest: string] => {
  const space = text.indexOf(' ')
  return space === -1 ? [text, ''] : [text.slice(0, space), text.slice(space + 1)]
}

type Combine = (left: number, right: number) => number

const sum: Combine = (left, right) => left + right

/** What is no amount that several processes have together. */
const COMBINE: Readonly<Record<string, Combine>> = {
  centrifugo_node_num_nodes: Math.max,
  centrifugo_node_build: Math.max,
  relay_engine_ready: Math.min,
  nodejs_version_info: Math.max,
  process_start_time_seconds: Math.min,
  process_max_fds: Math.min
}
const combinationOf = (name: string): Combine =>
  COMBINE[name] ?? (name.startsWith('nodejs_eventloop_lag') ? Math.max : sum)

/** What is told of each process apart: where it comes from, and its own name. A sum over both would count everything twice. */
const OF_EACH = [
  ['centrifugo_node_num_clients', 'relay_worker_clients'],
  ['centrifugo_node_num_users', 'relay_worker_users'],
  ['centrifugo_node_num_subscriptions', 'relay_worker_subscriptions'],
  ['centrifugo_node_num_channels', 'relay_worker_channels'],
  ['centrifugo_transport_messages_sent', 'relay_worker_messages_sent_total'],
  ['process_cpu_seconds_total', 'relay_worker_cpu_seconds_total'],
  ['process_resident_memory_bytes', 'relay_worker_resident_memory_bytes'],
  ['nodejs_eventloop_lag_p99_seconds', 'relay_worker_eventloop_lag_p99_seconds']
] as const

/** The numbers of all processes of a relay, as one text: the usual names for all of them together, and some for each. */
export class MergedMetrics {
  readonly #latest = new Map<string, readonly Family[]>()
  /** What processes that have ended had counted. Without it the sums would fall, and then seem to have risen by all of it. */
  #ended: readonly Family[] = []

  /** Null for a process that has not said anything this time: what it said last then counts. */
  text(byProcess: ReadonlyMap<string, string | null>): string {
    for (const [process, text] of byProcess) if (text !== null) this.#latest.set(process, parseMetrics(text))
    const present = [...byProcess.keys()].map((process) => [process, this.#latest.get(process) ?? []] as const)
    return metricsText([...merge([...present.map(([, families]) => families), this.#ended]), ...ofEach(present)])
  }

  /** As far as anybody has seen it count. */
  end(process: string): void {
    const counted = (this.#latest.get(process) ?? []).filter(({ type }) => type === 'counter' || type === 'histogram')
    this.#latest.delete(process)
    this.#ended = [...merge([this.#ended, counted])]
  }
}

const merge = (lists: readonly (readonly Family[])[]): Iterable<Family> => {
  const merged = new Map<string, Family & { readonly samples: Map<string, number> }>()
  for (const family of lists.flat()) {
    const known = merged.get(family.name)
    if (known === undefined) {
      merged.set(family.name, { ...family, samples: new Map(family.samples) })
      continue
    }
    const combine = combinationOf(family.name)
    for (const [sample, value] of family.samples) {
      const other = known.samples.get(sample)
      known.samples.set(sample, other === undefined ? value : combine(other, value))
    }
  }
  return merged.values()
}

const ofEach = (present: readonly (readonly [process: string, families: readonly Family[]])[]): readonly Family[] =>
  OF_EACH.map(([source, name]) => {
    const samples = new Map<string, number>()
    let found: Family | undefined
    for (const [process, families] of present) {
      const family = families.find((each) => each.name === source)
      if (family === undefined) continue
      found = family
      samples.set(`${name}{worker="${process}"}`, [...family.samples.values()].reduce(sum, 0))
    }
    return { name, help: found?.help ?? '', type: found?.type ?? 'gauge', samples }
  })

/** Of who takes longer, what it said last counts. */
const PATIENCE_MS = 5000
const OWNER = 'owner'

/** Puts the numbers of all processes together, whichever of them is asked. */
export class PrimaryMetrics {
  readonly #registry = new Registry()
  readonly #replacements: Counter
  readonly #merged = new MergedMetrics()
  readonly #ipcChannels = new Map<string, IpcChannel>()

  constructor() {
    collectProcessMetrics(this.#registry)
    this.#replacements = new Counter({
      name: 'relay_worker_replacements_total',
      help: 'Workers that exited and were replaced.',
      registers: [this.#registry]
    })
  }

  serve(ipc: IpcChannel, number: number): void {
    const process = String(number)
    this.#ipcChannels.set(process, ipc)
    ipc.onRequest({
      readMetrics: async () => {
        const text = await this.#read()
        return (out) => out.text(text)
      }
    })
    void ipc.closed.then(() => {
      this.#replacements.inc()
      this.#merged.end(process)
      if (this.#ipcChannels.get(process) === ipc) this.#ipcChannels.delete(process)
    })
  }

  async #read(): Promise<string> {
    const asked = [...this.#ipcChannels].map(async ([process, ipc]) => {
      const text = await withTimeout(
        PATIENCE_MS,
        ipc.request('readWorkerMetrics', EMPTY_REPLY, (fields) => fields.text())
      )
      return [process, text] as const
    })
    const texts = [...(await Promise.all(asked)), [OWNER, await this.#registry.metrics()] as const]
    // One may have ended meanwhile, and is counted among those that have.
    return this.#merged.text(new Map(texts.filter(([process]) => process === OWNER || this.#ipcChannels.has(process))))
  }
}
