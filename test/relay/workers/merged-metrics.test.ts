import t from 'tap'
import { MergedMetrics } from '../../../src/relay/workers/metrics.js'

const family = (name: string, type: string, ...lines: string[]): string =>
  `# HELP ${name} About ${name}.\n# TYPE ${name} ${type}\n${lines.map((line) => `${line}\n`).join('')}\n`

const workerText = (clients: number, sent: number): string =>
  family('centrifugo_node_num_clients', 'gauge', `centrifugo_node_num_clients ${clients}`) +
  family('centrifugo_node_num_nodes', 'gauge', 'centrifugo_node_num_nodes 2') +
  family(
    'centrifugo_transport_messages_sent',
    'counter',
    `centrifugo_transport_messages_sent{transport="a b",frame_type="x"} ${sent}`,
    `centrifugo_transport_messages_sent{transport="sse",frame_type="y"} 1`
  ) +
  family('took_seconds', 'histogram', `took_seconds_bucket{le="+Inf"} ${sent}`, `took_seconds_sum ${sent / 2}`) +
  family('nodejs_eventloop_lag_p99_seconds', 'gauge', `nodejs_eventloop_lag_p99_seconds 0.0${clients}`) +
  family('process_start_time_seconds', 'gauge', `process_start_time_seconds ${1000 + clients}`)

const numberOf = (text: string, sample: string): number | undefined => {
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `))
  return line === undefined ? undefined : Number(line.slice(sample.length + 1))
}

t.test('the numbers of several processes', async (t) => {
  const both = new Map([
    ['1', workerText(3, 10)],
    ['2', workerText(4, 20)]
  ])
  const cases: [sample: string, value: number, why: string][] = [
    ['centrifugo_node_num_clients', 7, 'amounts are added'],
    ['centrifugo_transport_messages_sent{transport="a b",frame_type="x"}', 30, 'by label, whatever it holds'],
    ['centrifugo_transport_messages_sent{transport="sse",frame_type="y"}', 2, 'by label'],
    ['took_seconds_bucket{le="+Inf"}', 30, 'buckets too'],
    ['took_seconds_sum', 15, 'sums too'],
    ['centrifugo_node_num_nodes', 2, 'all know the same nodes'],
    ['nodejs_eventloop_lag_p99_seconds', 0.04, 'the worst counts'],
    ['process_start_time_seconds', 1003, 'the oldest counts'],
    ['relay_worker_clients{worker="1"}', 3, 'each has its own'],
    ['relay_worker_messages_sent_total{worker="2"}', 21, 'without the labels']
  ]
  for (const [sample, value, why] of cases) {
    t.test(`have ${sample} at ${value}: ${why}`, async (t) => {
      t.equal(numberOf(new MergedMetrics().text(both), sample), value)
    })
  }

  t.test('have every name once, with what it is', async (t) => {
    const text = new MergedMetrics().text(both)
    for (const line of text.split('\n').filter((each) => each.startsWith('#'))) {
      t.equal(text.split(`${line}\n`).length, 2, line)
    }
    t.match(text, '# TYPE relay_worker_messages_sent_total counter\n')
  })

  t.test('do not fall where a process ends, and none counts twice', async (t) => {
    const merged = new MergedMetrics()
    const sent = 'centrifugo_transport_messages_sent{transport="a b",frame_type="x"}'
    merged.text(both)
    merged.end('2')
    const text = merged.text(new Map([['1', workerText(3, 11)]]))
    t.equal(numberOf(text, sent), 31)
    t.equal(numberOf(text, 'centrifugo_node_num_clients'), 3, 'who is gone is not there')
    const replaced = merged.text(
      new Map([
        ['1', workerText(3, 11)],
        ['2', workerText(1, 5)]
      ])
    )
    t.equal(numberOf(replaced, sent), 36)
    merged.end('2')
    t.equal(numberOf(merged.text(new Map([['1', workerText(3, 11)]])), sent), 36)
  })

  t.test('have what one said last where it is silent', async (t) => {
    const merged = new MergedMetrics()
    merged.text(both)
    const text = merged.text(
      new Map([
        ['1', workerText(3, 11)],
        ['2', null]
      ])
    )
    t.equal(numberOf(text, 'centrifugo_node_num_clients'), 7)
  })
})
