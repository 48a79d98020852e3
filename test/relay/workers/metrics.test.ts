import t from 'tap'
import type { MetricJson } from '../../../src/relay/metrics/metric-json.js'
import { AggregatedMetrics } from '../../../src/relay/workers/aggregated-metrics.js'

type Values = MetricJson['values']

const metric = (name: string, type: string, aggregator: string, values: Values): MetricJson => ({
  name,
  help: `About ${name}.`,
  type,
  aggregator,
  values
})

const gauge = (name: string, value: number, aggregator = 'sum'): MetricJson =>
  metric(name, 'gauge', aggregator, [{ value, labels: {} }])

/** Metrics of a worker, with the aggregators that prom-client and the relay set. */
const workerMetrics = (clients: number, sent: number): readonly MetricJson[] => [
  gauge('centrifugo_node_num_clients', clients),
  gauge('centrifugo_node_num_nodes', 2, 'max'),
  metric('centrifugo_transport_messages_sent', 'counter', 'sum', [
    { value: sent, labels: { transport: 'a b', frame_type: 'x' } },
    { value: 1, labels: { transport: 'sse', frame_type: 'y' } }
  ]),
  metric('took_seconds', 'histogram', 'sum', [
    { value: sent, labels: { le: '+Inf' }, metricName: 'took_seconds_bucket' },
    { value: sent / 2, labels: {}, metricName: 'took_seconds_sum' }
  ]),
  gauge('nodejs_eventloop_lag_p99_seconds', clients / 100, 'average'),
  gauge('process_start_time_seconds', 1000 + clients, 'omit'),
  gauge('process_open_fds', 20 + clients),
  gauge('process_max_fds', 1024 * clients)
]

const sampleValue = (text: string, sample: string): number | undefined => {
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `))
  return line === undefined ? undefined : Number(line.slice(sample.length + 1))
}

const BOTH = new Map([
  ['1', workerMetrics(3, 10)],
  ['2', workerMetrics(4, 20)]
])

const cases: [sample: string, value: number, rule: string][] = [
  ['centrifugo_node_num_clients', 7, 'gauges are summed'],
  ['centrifugo_transport_messages_sent{transport="a b",frame_type="x"}', 30, 'counters are summed by labels'],
  ['centrifugo_transport_messages_sent{transport="sse",frame_type="y"}', 2, 'counters are summed by labels'],
  ['took_seconds_bucket{le="+Inf"}', 30, 'histogram buckets are summed'],
  ['took_seconds_sum', 15, 'histogram sums are summed'],
  ['centrifugo_node_num_nodes', 2, 'the number of nodes is the maximum'],
  ['nodejs_eventloop_lag_p99_seconds', 0.04, 'the event loop lag is the maximum'],
  ['process_start_time_seconds', 1003, 'the start time is the earliest'],
  ['process_open_fds', 24, 'open file descriptors are those of the process with the most'],
  ['process_max_fds', 3072, 'the limit of file descriptors is the lowest'],
  ['relay_worker_clients{worker="1"}', 3, 'some metrics are exported per process'],
  ['relay_worker_messages_sent_total{worker="2"}', 21, 'metrics per process are summed over their labels']
]
for (const [sample, value, rule] of cases) {
  t.test(`metrics of two workers: ${sample} is ${value}, because ${rule}`, async (t) => {
    t.equal(sampleValue(await new AggregatedMetrics().text(BOTH), sample), value)
  })
}

t.test('aggregated metrics have every name once, with its type', async (t) => {
  const text = await new AggregatedMetrics().text(BOTH)
  for (const line of text.split('\n').filter((each) => each.startsWith('#'))) {
    t.equal(text.split(`${line}\n`).length, 2, line)
  }
  t.match(text, '# TYPE relay_worker_messages_sent_total counter\n')
})

t.test('counters do not decrease when a worker exits, and gauges do', async (t) => {
  const metrics = new AggregatedMetrics()
  const sent = 'centrifugo_transport_messages_sent{transport="a b",frame_type="x"}'
  await metrics.text(BOTH)
  await metrics.processExited('2')
  const one = new Map([['1', workerMetrics(3, 11)]])
  const text = await metrics.text(one)
  t.equal(sampleValue(text, sent), 31)
  t.equal(sampleValue(text, 'centrifugo_node_num_clients'), 3)
  const replaced = await metrics.text(new Map([...one, ['2', workerMetrics(1, 5)]]))
  t.equal(sampleValue(replaced, sent), 36)
  await Promise.all([metrics.processExited('2'), metrics.processExited('1')])
  t.equal(sampleValue(await metrics.text(new Map([['1', workerMetrics(3, 1)]])), sent), 37, 'also if two exit at once')
})

t.test('the last metrics of a worker count if it does not reply', async (t) => {
  const metrics = new AggregatedMetrics()
  await metrics.text(BOTH)
  const text = await metrics.text(
    new Map([
      ['1', workerMetrics(3, 11)],
      ['2', null]
    ])
  )
  t.equal(sampleValue(text, 'centrifugo_node_num_clients'), 7)
})
