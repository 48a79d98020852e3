import type { MetricJson } from './metric-json.js'

// Centrifugo exports some durations twice: as a histogram, and as a summary without the suffix `_histogram`. Here the summary
// is calculated from the histogram at each scrape: it costs nothing per command, and it is right for the sum of all workers,
// whose quantiles could not be added. A quantile is as precise as the buckets are narrow.

const SUFFIX = '_histogram'
const QUANTILES = [0.5, 0.9, 0.95, 0.99, 0.999]

/** Adds a summary for each histogram whose name ends with `_histogram`. */
export const withSummaries = (metrics: readonly MetricJson[]): readonly MetricJson[] => [
  ...metrics,
  ...metrics.filter(({ name, type }) => type === 'histogram' && name.endsWith(SUFFIX)).map(summaryOf)
]

interface Series {
  readonly labels: Readonly<Record<string, string | number>>
  readonly buckets: { readonly bound: number; readonly count: number }[]
  sum: number
  count: number
}

const summaryOf = (histogram: MetricJson): MetricJson => {
  const name = histogram.name.slice(0, -SUFFIX.length)
  const values = seriesOf(histogram).flatMap(({ labels, buckets, sum, count }) => [
    ...QUANTILES.map((quantile) => ({ labels: { ...labels, quantile }, value: quantileOf(buckets, count, quantile) })),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count }
  ])
  return { ...histogram, name, type: 'summary', values }
}

const seriesOf = ({ name, values }: MetricJson): readonly Series[] => {
  const byLabels = new Map<string, Series>()
  for (const { labels: all, value, metricName } of values) {
    const { le, ...labels } = all
    const key = JSON.stringify(labels)
    const series = byLabels.get(key) ?? { labels, buckets: [], sum: 0, count: 0 }
    byLabels.set(key, series)
    if (metricName === `${name}_sum`) series.sum = value
    else if (metricName === `${name}_count`) series.count = value
    else series.buckets.push({ bound: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), count: value })
  }
  return [...byLabels.values()]
}

/** Interpolates within the bucket of the quantile, as `histogram_quantile` of Prometheus does. */
const quantileOf = (buckets: Series['buckets'], count: number, quantile: number): number => {
  if (count === 0) return Number.NaN
  const rank = quantile * count
  let lower = { bound: 0, count: 0 }
  for (const bucket of buckets) {
    if (bucket.count >= rank) {
      // Nothing is known about the values in the last bucket except their lower bound.
      if (!Number.isFinite(bucket.bound)) return lower.bound
      const share = bucket.count === lower.count ? 0 : (rank - lower.count) / (bucket.count - lower.count)
      return lower.bound + (bucket.bound - lower.bound) * share
    }
    lower = bucket
  }
  return lower.bound
}
