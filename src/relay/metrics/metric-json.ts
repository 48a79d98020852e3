/** A metric as `getMetricsAsJSON` of prom-client returns it. */
export interface MetricJson {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly aggregator: string
  readonly values: readonly {
    readonly value: number
    readonly labels: Readonly<Record<string, string | number>>
    readonly metricName?: string
  }[]
}

/** The text was written by prom-client, whose types declare the metric type as a number, although it is a string. */
export const parseMetrics = (text: string): readonly MetricJson[] => JSON.parse(text)
