import { CounterFamily, type CounterSeries, HistogramFamily, type HistogramSeries } from '../../shared/metric-series.js'

/** Who could make up a new label with each message would fill the memory; what comes after so many is one. */
const MAX_SERIES = 1000
const OTHER = 'other'

/** Counters, or gauges, of one name, made when a set of labels is first met. */
export class Counters<const Label extends string> {
  readonly #family: CounterFamily
  readonly #labels: readonly Label[]
  readonly #series = new Map<string, CounterSeries>()

  constructor(name: string, help: string, labels: readonly Label[], type: 'counter' | 'gauge' = 'counter') {
    this.#family = new CounterFamily(name, help, type)
    this.#labels = labels
    // A rate sees only what changes, so a number that begins with its first occurrence is missed.
    if (labels.length === 0) this.of()
  }

  /** The number for these labels, in the order of their names. Whoever counts often keeps it. */
  of(...values: string[]): CounterSeries {
    return seriesOf(this.#series, values, (known) => this.#family.add(labelled(this.#labels, known)))
  }

  text(): string {
    return this.#family.text()
  }
}

/** The same for histograms. */
export class Histograms<const Label extends string> {
  readonly #family: HistogramFamily
  readonly #labels: readonly Label[]
  readonly #series = new Map<string, HistogramSeries>()

  constructor(name: string, help: string, labels: readonly Label[], bounds: readonly number[]) {
    this.#family = new HistogramFamily(name, help, bounds)
    this.#labels = labels
  }

  of(...values: string[]): HistogramSeries {
    return seriesOf(this.#series, values, (known) => this.#family.add(labelled(this.#labels, known)))
  }

  text(): string {
    return this.#family.text()
  }
}

const seriesOf = <Series>(
  all: Map<string, Series>,
  values: readonly string[],
  add: (values: readonly string[]) => Series
): Series => {
  const key = values.length === 1 ? (values[0] as string) : values.join('\n')
  const known = all.get(key)
  if (known !== undefined) return known
  if (all.size >= MAX_SERIES && values.some((value) => value !== OTHER)) {
    const others = values.map(() => OTHER)
    return seriesOf(all, others, add)
  }
  const series = add(values)
  all.set(key, series)
  return series
}

const labelled = (names: readonly string[], values: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']))
