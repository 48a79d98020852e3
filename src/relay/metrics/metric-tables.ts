import { CounterFamily, type CounterSeries, HistogramFamily, type HistogramSeries } from './metric-series.js'

/** Who could make up a new label with each message would fill the memory; what comes after so many is one. */
const MAX_SERIES = 1000
const OTHER = 'other'

interface Traffic {
  readonly messages: CounterSeries
  readonly bytes: CounterSeries
}

type Branch<Series> = Map<string, Branch<Series> | Series>

/**
 * Finds the series of a set of labels, and makes it when it is first met. A map in a map for each label: joining the labels
 * to one key would make a new text for every message, which costs more than all of the counting.
 */
class SeriesTree<Series extends object> {
  readonly #names: readonly string[]
  readonly #make: (labels: Readonly<Record<string, string>>) => Series
  readonly #root: Branch<Series> = new Map()
  #size = 0
  #others: Series | null = null

  constructor(names: readonly string[], make: (labels: Readonly<Record<string, string>>) => Series) {
    this.#names = names
    this.#make = make
  }

  find(values: readonly string[]): Series {
    let branch = this.#root
    for (const value of values) {
      const next = branch.get(value)
      if (next === undefined) return this.#add(values)
      if (!(next instanceof Map)) return next
      branch = next
    }
    return this.#add(values)
  }

  #add(values: readonly string[]): Series {
    if (this.#size >= MAX_SERIES) {
      this.#others ??= this.#make(
        labelled(
          this.#names,
          this.#names.map(() => OTHER)
        )
      )
      return this.#others
    }
    this.#size += 1
    const series = this.#make(labelled(this.#names, values))
    let branch = this.#root
    for (const value of values.slice(0, -1)) {
      const next = branch.get(value) ?? new Map()
      branch.set(value, next)
      branch = next as Branch<Series>
    }
    branch.set(values.at(-1) ?? '', series)
    return series
  }
}

const labelled = (names: readonly string[], values: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']))

/** Counters, or gauges, of one name. */
export class Counters {
  readonly #family: CounterFamily
  readonly #series: SeriesTree<CounterSeries>

  constructor(name: string, help: string, labels: readonly string[], type: 'counter' | 'gauge' = 'counter') {
    this.#family = new CounterFamily(name, help, type)
    this.#series = new SeriesTree(labels, (known) => this.#family.add(known))
  }

  /** The number for these labels, in the order of their names. Whoever counts often keeps it. */
  of(...values: string[]): CounterSeries {
    return this.#series.find(values)
  }

  text(): string {
    return this.#family.text()
  }
}

/** Two counters that go together: how many messages, and how many bytes. Found in one step. */
export class TrafficCounters {
  readonly #messages: CounterFamily
  readonly #bytes: CounterFamily
  readonly #all: (Traffic & { readonly labels: Readonly<Record<string, string>> })[] = []
  readonly #series: SeriesTree<Traffic>

  constructor(name: string, help: string, labels: readonly string[]) {
    this.#messages = new CounterFamily(name, `Messages ${help}`)
    this.#bytes = new CounterFamily(`${name}_size`, `Bytes ${help}`)
    this.#series = new SeriesTree(labels, (known) => {
      const traffic = { messages: this.#messages.add(known), bytes: this.#bytes.add(known) }
      this.#all.push({ ...traffic, labels: known })
      return traffic
    })
  }

  of(...values: string[]): Traffic {
    return this.#series.find(values)
  }

  /** Of all whose label has the value; of all where none is named. */
  total(label?: string, value?: string): { readonly messages: number; readonly bytes: number } {
    let messages = 0
    let bytes = 0
    for (const each of this.#all) {
      if (label !== undefined && each.labels[label] !== value) continue
      messages += each.messages.value
      bytes += each.bytes.value
    }
    return { messages, bytes }
  }

  text(): string {
    return this.#messages.text() + this.#bytes.text()
  }
}

/** A counter without labels. It is there at zero: a rate sees only what changes, so the first occurrence would be missed. */
export class Counter {
  readonly #family: CounterFamily
  readonly #series: CounterSeries

  constructor(name: string, help: string) {
    this.#family = new CounterFamily(name, help)
    this.#series = this.#family.add({})
  }

  add(): void {
    this.#series.value += 1
  }

  text(): string {
    return this.#family.text()
  }
}

/** Histograms of one name. */
export class Histograms {
  readonly #family: HistogramFamily
  readonly #series: SeriesTree<HistogramSeries>

  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[]) {
    this.#family = new HistogramFamily(name, help, bounds)
    this.#series = new SeriesTree(labels, (known) => this.#family.add(known))
  }

  of(...values: string[]): HistogramSeries {
    return this.#series.find(values)
  }

  text(): string {
    return this.#family.text()
  }
}
