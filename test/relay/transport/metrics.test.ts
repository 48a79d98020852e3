import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { register as globalRegistry } from 'prom-client'
import t from 'tap'
import { RelayMetrics } from '../../../src/relay/metrics/relay-metrics.js'
import { metricsRoute } from '../../../src/relay/transport/server.js'
import { AddressSet } from '../../../src/shared/ip-address.js'
import { portOf } from '../../helper/address.js'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { responseOf } from '../../helper/exact-http.js'
import { type HttpResponse, send } from '../../helper/http.js'
import { connectedClient, openClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { type ConfigFile, configOf } from '../../helper/relay-rules.js'
import { startWorkers } from '../../helper/relay-workers.js'

const STATS = { clients: 3, users: 2, channels: 5, subscriptions: 7 }
const create = () => {
  const metrics = new RelayMetrics({
    version: '1.2.3',
    stats: () => STATS,
    nodes: () => 1,
    isEngineReady: () => true,
    hasProcessMetrics: true,
    silences: () => new Map()
  })
  metrics.addSharedEngine()
  return metrics
}

const samplesOf = async (metrics: RelayMetrics): Promise<Map<string, number>> => {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))])
  )
}

const NAMES = [
  'node_num_clients gauge',
  'node_num_users gauge',
  'node_num_subscriptions gauge',
  'node_num_channels gauge',
  'node_num_nodes gauge',
  'node_build gauge',
  'node_messages_sent_count counter',
  'node_messages_received_count counter',
  'node_action_count counter',
  'node_broadcast_duration_seconds histogram',
  'node_pub_sub_lag_seconds histogram',
  'node_client_connection_limit counter',
  'client_connections_accepted counter',
  'client_connections_inflight gauge',
  'client_subscriptions_accepted counter',
  'client_subscriptions_inflight gauge',
  'client_command_duration_seconds_histogram histogram',
  'client_num_reply_errors counter',
  'client_num_server_unsubscribes counter',
  'client_num_server_disconnects counter',
  'client_recover counter',
  'client_ping_pong_duration_seconds histogram',
  'transport_messages_sent counter',
  'transport_messages_sent_size counter',
  'transport_messages_received counter',
  'transport_messages_received_size counter',
  'transport_outgoing_close_count counter',
  'api_command_duration_seconds_histogram histogram',
  'api_command_errors_total counter',
  'broker_publish_suppressed_count counter',
  'client_command_duration_seconds summary',
  'api_command_duration_seconds summary',
  'node_survey_duration_seconds summary',
  'node_survey_duration_seconds_histogram histogram',
  'client_recovered_publications histogram',
  'node_incoming_http_requests_total counter',
  'broker_redis_pub_sub_errors counter',
  'broker_redis_pub_sub_dropped_messages counter'
]

t.test('metric names of Centrifugo', async (t) => {
  const page = await create().text()
  for (const name of NAMES) {
    t.test(`the metrics contain centrifugo_${name}`, async (t) => {
      t.match(page, `# TYPE centrifugo_${name}\n`)
    })
  }

  t.test('the metrics contain process metrics', async (t) => {
    t.match(page, '# TYPE process_cpu_seconds_total counter\n')
    t.match(page, '# TYPE nodejs_eventloop_lag_seconds gauge\n')
  })

  t.test('the metrics are not in the global registry', async (t) => {
    t.equal(globalRegistry.getMetricsAsArray().length, 0)
  })
})

t.test('statistics of the relay are read with each scrape', async (t) => {
  const samples = await samplesOf(create())

  t.equal(samples.get('centrifugo_node_num_clients'), 3)
  t.equal(samples.get('centrifugo_node_num_users'), 2)
  t.equal(samples.get('centrifugo_node_num_channels'), 5)
  t.equal(samples.get('centrifugo_node_num_subscriptions'), 7)
  t.equal(samples.get('centrifugo_node_num_nodes'), 1)
  t.equal(samples.get('centrifugo_node_build{version="1.2.3"}'), 1)
})

type RecordEvent = (metrics: RelayMetrics) => void

const COUNTS: readonly (readonly [title: string, record: RecordEvent, samples: Readonly<Record<string, number>>])[] = [
  [
    'an accepted client',
    (metrics) => metrics.clientConnected('websocket', 'js', ''),
    {
      'centrifugo_client_connections_accepted{transport="websocket",accept_protocol="",client_name="js",client_version="unversioned"}': 1,
      'centrifugo_client_connections_inflight{transport="websocket",accept_protocol="",client_name="js",client_version="unversioned"}': 1,
      'centrifugo_node_action_count{action="add_client",channel_namespace=""}': 1
    }
  ],
  [
    'a client that connected and disconnected',
    (metrics) => {
      metrics.clientConnected('sse', '', '1.0')
      metrics.clientClosed('sse', '', '1.0')
    },
    {
      'centrifugo_client_connections_accepted{transport="sse",accept_protocol="",client_name="unnamed",client_version="unregistered"}': 1,
      'centrifugo_client_connections_inflight{transport="sse",accept_protocol="",client_name="unnamed",client_version="unregistered"}': 0,
      'centrifugo_node_action_count{action="remove_client",channel_namespace=""}': 1
    }
  ],
  [
    'a client that was too slow',
    (metrics) => metrics.disconnected('websocket', 3008),
    {
      'centrifugo_client_num_server_disconnects{code="3008"}': 1,
      'centrifugo_transport_outgoing_close_count{transport="websocket",code="3008"}': 1,
      relay_slow_disconnects_total: 1
    }
  ],
  [
    'a client that was disconnected by the server',
    (metrics) => metrics.disconnected('websocket', 3503),
    { 'centrifugo_client_num_server_disconnects{code="3503"}': 1, relay_slow_disconnects_total: 0 }
  ],
  [
    'a subscription',
    (metrics) => metrics.subscribed('floor', 'js', 2),
    {
      'gatehouse_subscriptions_by_rate{rate="2"}': 1,
      'gatehouse_subscriptions_by_rate{rate="full"}': 0,
      'centrifugo_client_subscriptions_accepted{client_name="js",channel_namespace="floor"}': 1,
      'centrifugo_client_subscriptions_inflight{client_name="js",channel_namespace="floor"}': 1,
      'centrifugo_node_action_count{action="add_subscription",channel_namespace="floor"}': 1
    }
  ],
  [
    'a subscription that ended',
    (metrics) => {
      metrics.subscribed('floor', 'mine', null)
      metrics.unsubscribed('floor', 'mine', null)
    },
    {
      'centrifugo_client_subscriptions_accepted{client_name="unregistered",channel_namespace="floor"}': 1,
      'centrifugo_client_subscriptions_inflight{client_name="unregistered",channel_namespace="floor"}': 0,
      'centrifugo_node_action_count{action="remove_subscription",channel_namespace="floor"}': 1
    }
  ],
  [
    'a subscription ended by the server',
    (metrics) => metrics.serverUnsubscribed('floor', 2500),
    { 'centrifugo_client_num_server_unsubscribes{code="2500",channel_namespace="floor"}': 1 }
  ],
  [
    'commands',
    (metrics) => {
      metrics.command('subscribe', 'floor', 100, 'websocket')
      metrics.command('subscribe', 'floor', 50, 'websocket')
      metrics.command('pong', '', 2, 'sse')
    },
    {
      'centrifugo_transport_messages_received{transport="websocket",frame_type="subscribe",channel_namespace="floor"}': 2,
      'centrifugo_transport_messages_received_size{transport="websocket",frame_type="subscribe",channel_namespace="floor"}': 150,
      'centrifugo_transport_messages_received{transport="sse",frame_type="client_pong",channel_namespace=""}': 1
    }
  ],
  [
    'a command with a reply',
    (metrics) => metrics.replied('subscribe', 'floor', 0.0003),
    {
      'centrifugo_client_command_duration_seconds_histogram_bucket{method="subscribe",channel_namespace="floor",le="0.00025"}': 0,
      'centrifugo_client_command_duration_seconds_histogram_bucket{method="subscribe",channel_namespace="floor",le="0.0005"}': 1,
      'centrifugo_client_command_duration_seconds_histogram_count{method="subscribe",channel_namespace="floor"}': 1
    }
  ],
  [
    'a command with an error',
    (metrics) => metrics.replyError('subscribe', 'floor', 103),
    { 'centrifugo_client_num_reply_errors{method="subscribe",code="103",channel_namespace="floor"}': 1 }
  ],
  [
    'recoveries',
    (metrics) => {
      metrics.recovered('floor', true, 3)
      metrics.recovered('floor', true, 0)
      metrics.recovered('floor', false, 0)
    },
    {
      'centrifugo_client_recover{recovered="yes",channel_namespace="floor",has_recovered_publications="yes"}': 1,
      'centrifugo_client_recover{recovered="yes",channel_namespace="floor",has_recovered_publications="no"}': 1,
      'centrifugo_client_recover{recovered="no",channel_namespace="floor",has_recovered_publications="no"}': 1
    }
  ],
  [
    'publications',
    (metrics) => {
      metrics.published('floor')
      metrics.published('floor')
      metrics.messageSent('join', 'floor')
      metrics.delivered('publication', 'floor', 0.002, 0.003)
    },
    {
      'centrifugo_node_messages_sent_count{type="publication",channel_namespace="floor"}': 2,
      'centrifugo_node_messages_sent_count{type="join",channel_namespace="floor"}': 1,
      'centrifugo_node_messages_received_count{type="publication",channel_namespace="floor"}': 1,
      'centrifugo_node_broadcast_duration_seconds_bucket{type="publication",channel_namespace="floor",le="0.001"}': 0,
      'centrifugo_node_broadcast_duration_seconds_bucket{type="publication",channel_namespace="floor",le="0.005"}': 1,
      'centrifugo_node_pub_sub_lag_seconds_sum{channel_namespace="floor"}': 0.003
    }
  ],
  [
    'frames sent to clients',
    (metrics) => {
      const { messages, bytes } = metrics.sent('websocket', 'push_publication', 'floor')
      messages.value += 1000
      bytes.value += 2_500_000
    },
    {
      'centrifugo_transport_messages_sent{transport="websocket",frame_type="push_publication",channel_namespace="floor"}': 1000,
      'centrifugo_transport_messages_sent_size{transport="websocket",frame_type="push_publication",channel_namespace="floor"}': 2_500_000
    }
  ],
  [
    'a pong',
    (metrics) => metrics.pongReceived('websocket', 0.02),
    { 'centrifugo_client_ping_pong_duration_seconds_bucket{transport="websocket",le="0.025"}': 1 }
  ],
  [
    'calls of the publish API',
    (metrics) => {
      metrics.apiReplied('publish', 0.0001)
      metrics.apiError('publish', 102)
    },
    {
      'centrifugo_api_command_duration_seconds_histogram_bucket{protocol="http",method="publish",le="0.0001"}': 1,
      'centrifugo_api_command_errors_total{protocol="http",method="publish",error="102"}': 1
    }
  ],
  [
    'a suppressed publication',
    (metrics) => metrics.suppressed('floor', 'idempotency'),
    { 'centrifugo_broker_publish_suppressed_count{reason="idempotency",channel_namespace="floor"}': 1 }
  ],
  [
    'conflated publications',
    (metrics) => metrics.conflated('floor', 600),
    { 'relay_conflated_publications_total{channel_namespace="floor"}': 600 }
  ],
  [
    'rejected connections',
    (metrics) => {
      metrics.connectionRejected('origin')
      metrics.connectionRejected('limit')
      metrics.connectionRejected('address')
      metrics.connectionRejected('shutdown')
    },
    {
      'relay_connections_refused_total{reason="origin"}': 1,
      'relay_connections_refused_total{reason="limit"}': 1,
      'relay_connections_refused_total{reason="shutdown"}': 1,
      centrifugo_node_client_connection_limit: 2
    }
  ]
]

t.test('values of metrics', async (t) => {
  for (const [title, record, expected] of COUNTS) {
    t.test(`the metrics count ${title}`, async (t) => {
      const metrics = create()

      record(metrics)

      const samples = await samplesOf(metrics)
      t.same(Object.fromEntries(Object.keys(expected).map((name) => [name, samples.get(name)])), expected)
    })
  }

  t.test('relay_slow_disconnects_total starts at zero', async (t) => {
    t.equal((await samplesOf(create())).get('relay_slow_disconnects_total'), 0)
  })

  t.test('the metrics text follows the Prometheus format', async (t) => {
    const metrics = create()
    for (const [, record] of COUNTS) record(metrics)

    for (const line of (await metrics.text()).split('\n'))
      t.match(line, /^$|^# (HELP|TYPE) |^[a-z_][a-z_\d]*(\{([a-z_]+="[^"]*",?)*\})? [-+\dNaInf.e]+$/)
  })
})

t.test('the number of label values is limited', async (t) => {
  const metrics = create()
  for (let count = 0; count < 3000; count++) {
    metrics.clientConnected('websocket', `name-${count}`, `version-${count}`)
    metrics.disconnected('websocket', 4000 + count)
    metrics.subscribed(`namespace-${count}`, `name-${count}`, null)
  }

  const samples = await samplesOf(metrics)
  t.ok(samples.size < 8_000, `${samples.size} samples`)
  t.equal(samples.get('centrifugo_client_num_server_disconnects{code="other"}'), 2000, 'none is lost')
  const accepted = [...samples].filter(([name]) => name.startsWith('centrifugo_client_connections_accepted'))
  t.same(
    accepted.map(([, value]) => value).filter((value) => value > 0),
    [3000],
    'unknown clients share a series'
  )
})

const startServer = async (t: Teardown, allowed: readonly string[], metrics = create()): Promise<number> => {
  const set = new AddressSet(allowed)
  const server = createServer(
    metricsRoute(
      () => metrics.text(),
      metrics.contentType,
      () => set
    )
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return portOf(server)
}

const sendRequest = async (port: number, method = 'GET', headers: Record<string, string> = {}) => {
  const request = httpRequest({ port, host: '127.0.0.1', path: '/metrics', method, headers, agent: false }).end()
  const response = await responseOf(request)
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

t.test('the /metrics route', async (t) => {
  t.test('/metrics responds to allowed addresses', async (t) => {
    const { status, headers, body } = await sendRequest(await startServer(t, ['loopback']))

    t.equal(status, 200)
    t.match(headers, { 'content-type': /^text\/plain; version=0\.0\.4/, 'cache-control': 'no-store' })
    t.match(body, 'centrifugo_node_num_clients 3\n')
  })

  for (const [title, allowed, method, headers] of [
    ['for another address', ['10.0.0.0/8'], 'GET', {}],
    ['without allowed addresses', [], 'GET', {}],
    ['for a request with X-Forwarded-For', ['loopback'], 'GET', { 'x-forwarded-for': '127.0.0.1' }],
    ['for a request with an empty X-Forwarded-For', ['loopback'], 'GET', { 'x-forwarded-for': '' }],
    ['for a request with Forwarded', ['loopback'], 'GET', { forwarded: 'for=127.0.0.1' }],
    ['for another method', ['loopback'], 'POST', {}]
  ] as const) {
    t.test(`/metrics is 404 ${title}`, async (t) => {
      const { status, body } = await sendRequest(await startServer(t, allowed), method, headers)

      t.same({ status, body }, { status: 404, body: '' })
    })
  }

  t.test('/metrics responds with 500 if a value cannot be read', async (t) => {
    const metrics = new RelayMetrics({
      version: '1',
      nodes: () => 1,
      isEngineReady: () => true,
      hasProcessMetrics: false,
      silences: () => new Map(),
      stats: () => {
        throw new Error('broken')
      }
    })

    t.equal((await sendRequest(await startServer(t, ['loopback'], metrics))).status, 500)
  })
})

t.test('frames are counted by type and namespace', async (t) => {
  const options = { allow_subscribe_for_client: true, presence: true, join_leave: true, force_push_join_leave: true }
  const edge = await startRelay(t, { channel: { namespaces: [{ name: 'chat', ...options }] } })
  const client = await connectedClient(t, edge.url, '42')
  await client.request({ id: 2, subscribe: { channel: 'chat:1' } })
  await client.next()
  await edge.publish('chat:1', 'hello')
  await client.next()
  await client.request({ id: 3, subscribe: { channel: 'nope:1' } })
  await client.request({ id: 4, rpc: {} })
  edge.advance(25_000)
  await client.next()
  client.send('{}')
  await client.request({ id: 5, presence: { channel: 'chat:1' } })
  await edge.api('presence', { channel: 'chat:1' })
  await edge.api('unsubscribe', { user: '42', channel: 'chat:1' })
  await client.next()
  const { body } = await send(edge.url, '/metrics', {})

  const frames = (direction: string): string[] =>
    [...body.matchAll(new RegExp(`^centrifugo_transport_messages_${direction}\\{(.*)\\} (\\d+)$`, 'gm'))].map(
      ([, labels, count]) => `${[...String(labels).matchAll(/"(.*?)"/g)].map(([, value]) => value).join(' ')}: ${count}`
    )
  t.same(frames('received').sort(), [
    'websocket client_pong : 1',
    'websocket connect : 1',
    'websocket presence chat: 1',
    'websocket rpc : 1',
    'websocket subscribe : 1',
    'websocket subscribe chat: 1'
  ])
  t.same(frames('sent').sort(), [
    'websocket connect : 1',
    'websocket presence chat: 1',
    'websocket push_join chat: 1',
    'websocket push_publication chat: 1',
    'websocket push_unsubscribe chat: 1',
    'websocket rpc : 1',
    'websocket server_ping : 1',
    'websocket subscribe : 1',
    'websocket subscribe chat: 1'
  ])
  for (const sample of [
    'client_num_reply_errors{method="rpc",code="108",channel_namespace=""} 1',
    'client_command_duration_seconds_histogram_count{method="subscribe",channel_namespace="chat"} 1',
    'node_action_count{action="add_presence",channel_namespace="chat"} 1',
    'node_action_count{action="presence",channel_namespace="chat"} 1',
    'node_action_count{action="remove_presence",channel_namespace="chat"} 1'
  ])
    t.match(body, `centrifugo_${sample}\n`)
})

t.test('actions at the engine and errors of a broadcast are counted as in Centrifugo', async (t) => {
  const open = { allow_subscribe_for_client: true }
  const edge = await startRelay(t, {
    client: { channel_position_check_delay: '1s' },
    channel: {
      namespaces: [
        { name: 'chat', ...open, history_size: 5, history_ttl: '60s', force_positioning: true },
        { name: 'fleet', ...open, subscription_type: 'map', map: { mode: 'recoverable', key_ttl: '1s' } }
      ]
    }
  })
  const counts = async (): Promise<readonly string[]> => {
    const { body } = await send(edge.url, '/metrics', {})
    return [...body.matchAll(/^centrifugo_node_action_count\{action="(.*)",channel_namespace="(.*)"\} ([1-9]\d*)$/gm)]
      .map(([, action, namespace, count]) => `${action} ${namespace} ${count}`)
      .filter((line) => /^(?:map_)?broker|top|survey/.test(line))
      .sort()
  }
  const client = await connectedClient(t, edge.url, '42')
  const other = await connectedClient(t, edge.url, '43')
  for (const each of [client, other]) await each.request({ id: 2, subscribe: { channel: 'chat:1' } })
  await client.request({ id: 3, subscribe: { channel: 'fleet:1', type: 1, phase: 2 } })
  t.same(await counts(), ['broker_subscribe chat 1', 'history_stream_top chat 2', 'map_broker_subscribe fleet 1'])
  edge.advance(500)
  edge.advance(1500)
  await eventually(async () => (await counts()).includes('history_stream_top chat 3'))
  for (const each of [client, other]) await each.request({ id: 4, unsubscribe: { channel: 'chat:1' } })
  await client.request({ id: 5, unsubscribe: { channel: 'fleet:1' } })
  await edge.api('channels', {})
  t.same(await counts(), [
    'broker_subscribe chat 1',
    'broker_unsubscribe chat 1',
    'history_stream_top chat 3',
    'map_broker_subscribe fleet 1',
    'map_broker_unsubscribe fleet 1',
    'survey  1'
  ])

  await edge.api('map_publish', { channel: 'fleet:1', key: 'a', data: 1 })
  await edge.api('broadcast', { channels: ['chat:1', 'none:1', '', 'fleet:1'], data: 1 })
  await edge.api('broadcast', { channels: Array.from({ length: 100 }, (_, n) => `none:${n}`), data: 1 })
  edge.advance(2_000)
  await edge.relay.maps.expire()
  const { body } = await send(edge.url, '/metrics', {})
  for (const sample of [
    'api_command_errors_total{protocol="http",method="broadcast_publish",error="102"} 101',
    'api_command_errors_total{protocol="http",method="broadcast_publish",error="107"} 2',
    'api_command_errors_total{protocol="http",method="broadcast",error="102"} 0',
    'map_broker_cleanup_removed_count{broker_name=""} 1',
    'map_broker_cleanup_errors_count{broker_name=""} 0'
  ])
    t.match(body, `centrifugo_${sample}\n`)
  t.match(body, /^centrifugo_map_broker_cleanup_lag_seconds\{broker_name=""\} [01]/m)
})

t.test('rejection counters start at zero', async (t) => {
  const text = await create().text()
  for (const reason of ['origin', 'limit', 'rate', 'address', 'shutdown']) {
    t.match(text, `relay_connections_refused_total{reason="${reason}"} 0\n`)
  }
})

t.test('a summary has the quantiles of its histogram', async (t) => {
  const metrics = create()
  for (let n = 0; n < 90; n++) metrics.apiReplied('publish', 0.0008)
  for (let n = 0; n < 10; n++) metrics.apiReplied('publish', 0.3)
  const samples = await samplesOf(metrics)
  const sample = (quantile: string): number | undefined =>
    samples.get(`centrifugo_api_command_duration_seconds{protocol="http",method="publish",quantile="${quantile}"}`)

  // Half of the observations are in the first 50 of 90 of the bucket from 0.5 ms to 1 ms.
  t.ok(Math.abs((sample('0.5') ?? 0) - (0.0005 + (0.0005 * 50) / 90)) < 1e-9)
  t.ok(Math.abs((sample('0.99') ?? 0) - (0.25 + 0.25 * 0.9)) < 1e-9)
  t.equal(samples.get('centrifugo_api_command_duration_seconds_count{protocol="http",method="publish"}'), 100)
})

t.test('counters are exported with 0 before the first event', async (t) => {
  const file = { channel: { namespaces: [{ name: 'chat' }] } }
  const samples = [
    'centrifugo_node_messages_sent_count{type="publication",channel_namespace="chat"}',
    'centrifugo_node_messages_received_count{type="leave",channel_namespace="chat"}',
    'centrifugo_node_action_count{action="add_subscription",channel_namespace="chat"}',
    'centrifugo_node_action_count{action="add_client",channel_namespace=""}',
    'centrifugo_node_action_count{action="survey",channel_namespace=""}',
    'centrifugo_node_action_count{action="broker_subscribe",channel_namespace="chat"}',
    'centrifugo_node_tags_filter_dropped_publications{channel_namespace="chat"}',
    'centrifugo_client_connections_accepted{transport="sse",accept_protocol="",client_name="js",client_version="unversioned"}',
    'centrifugo_client_subscriptions_accepted{client_name="unnamed",channel_namespace="chat"}',
    'centrifugo_client_num_reply_errors{method="subscribe",code="103",channel_namespace="chat"}',
    'centrifugo_client_num_reply_errors{method="connect",code="109",channel_namespace=""}',
    'centrifugo_client_num_server_unsubscribes{code="2500",channel_namespace="chat"}',
    'centrifugo_client_num_server_disconnects{code="3012"}',
    'centrifugo_client_recover{recovered="no",channel_namespace="chat",has_recovered_publications="no"}',
    'centrifugo_transport_outgoing_close_count{transport="websocket",code="3008"}',
    'centrifugo_api_command_errors_total{protocol="http",method="publish",error="102"}',
    'centrifugo_api_command_errors_total{protocol="http",method="broadcast_publish",error="102"}',
    'centrifugo_map_broker_cleanup_removed_count{broker_name=""}',
    'centrifugo_broker_publish_suppressed_count{reason="version",channel_namespace="chat"}',
    'relay_conflated_publications_total{channel_namespace="chat"}',
    'gatehouse_view_dropped_publications_total{channel_namespace="chat"}',
    'gatehouse_join_leave_dropped_total{channel_namespace="chat"}',
    'relay_rejections_total{kind="token",reason="other-channel"}',
    'relay_connections_refused_total{reason="address"}'
  ]
  const one = await startRelay(t, file)
  const workers = await startWorkers(t, 2, file)
  for (const [form, url] of [
    ['one process', one.url],
    ['two workers', workers.url]
  ] as const) {
    const lines = (await send(url, '/metrics')).body.split('\n')
    for (const sample of samples) t.ok(lines.includes(`${sample} 0`), `${form}: ${sample}`)
  }
})

t.test('counters of a namespace that a reload adds are exported with 0', async (t) => {
  const metrics = create()
  metrics.configure(configOf({ channel: { namespaces: [{ name: 'new' }] } }))

  t.equal((await samplesOf(metrics)).get('relay_conflated_publications_total{channel_namespace="new"}'), 0)
})

t.test('counters of very many namespaces are exported after their first event', async (t) => {
  const metrics = create()
  const namespaces = Array.from({ length: 500 }, (_, index) => ({ name: `n${index}` }))
  metrics.configure(configOf({ channel: { namespaces } }))
  metrics.conflated('n499', 3)

  const conflated = [...(await samplesOf(metrics))].filter(([name]) => name.startsWith('relay_conflated'))
  t.same(conflated, [['relay_conflated_publications_total{channel_namespace="n499"}', 3]])
})

t.test('optional metrics', async (t) => {
  const request = async (file: ConfigFile): Promise<string> => {
    const relay = await startRelay(t, file)
    await send(relay.url, '/health')
    await send(relay.url, '/nowhere/else')
    await relay.api('publish', { channel: 'unknown:1', data: 1 })
    await relay.api('info', {})
    await relay.api('nowhere', {})
    return (await send(relay.url, '/metrics')).body
  }

  t.test('with instrument_http_handlers, requests are counted by route, method and status', async (t) => {
    const page = await request({ prometheus: { instrument_http_handlers: true } })
    for (const labels of [
      'method="GET",path="/health",status="200"',
      'method="GET",path="other",status="404"',
      'method="POST",path="/api/publish",status="200"',
      'method="POST",path="/api/info",status="200"',
      'method="POST",path="/api/*",status="404"'
    ])
      t.match(page, `centrifugo_node_incoming_http_requests_total{${labels}} 1\n`)
    t.notMatch(page, 'nowhere')
  })

  t.test('with instrument_http_handlers, WebSocket handshakes are counted with their status', async (t) => {
    const relay = await startRelay(t, {
      prometheus: { instrument_http_handlers: true },
      client: { allowed_origins: ['https://app.example'] }
    })
    const client = await openClient(t, relay.url)
    client.ws.close()
    const handshake = (headers: Record<string, string>): Promise<HttpResponse> =>
      send(relay.url, '/connection/websocket', {
        headers: { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', ...headers }
      })
    const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
    t.equal((await handshake({ ...key, origin: 'https://other.example' })).status, 403)
    t.equal((await handshake({})).status, 400, 'without a key')
    t.equal((await send(relay.url, '/connection/websocket')).status, 426)
    const page = (await send(relay.url, '/metrics')).body
    for (const status of [101, 403, 400, 426])
      t.match(
        page,
        `centrifugo_node_incoming_http_requests_total{method="GET",path="/connection/websocket",status="${status}"} 1\n`
      )
  })

  t.test('without it, requests are not counted', async (t) => {
    t.notMatch(await request({}), 'centrifugo_node_incoming_http_requests_total{')
  })

  t.test('surveys are measured by operation', async (t) => {
    t.match(await request({}), 'centrifugo_node_survey_duration_seconds_count{op="info"} 1\n')
  })

  t.test('with recovered_publications_histogram, the publications of each recovery are counted', async (t) => {
    const metrics = create()
    metrics.recovered('floor', true, 3)
    metrics.configure(configOf({ prometheus: { recovered_publications_histogram: true } }))
    metrics.recovered('floor', true, 7)
    metrics.recovered('floor', false, 0)
    const samples = await samplesOf(metrics)
    t.equal(samples.get('centrifugo_client_recovered_publications_count{channel_namespace="floor"}'), 1)
    t.equal(samples.get('centrifugo_client_recovered_publications_sum{channel_namespace="floor"}'), 7)
  })
})
