import { join } from 'node:path'
import t from 'tap'
import { PYTHON_SDK_VERSIONS, preparePythonSdk } from '../../scripts/lib/python-sdk.js'
import { ROOT } from '../../scripts/lib/root.js'
import { thisMachine } from '../../scripts/lib/services.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'
import { startTcpProxy } from '../helper/tcp-proxy.js'

/** Starting Python may take long on a busy machine. */
const WITHIN_MS = 100_000

for (const version of PYTHON_SDK_VERSIONS) {
  t.test(
    `the official Python SDK ${version} connects, receives publications, and recovers missed publications`,
    async (t) => {
      const { port, publish } = await startRelay(t)
      const proxy = await startTcpProxy(t, port)
      const python = await startChild(
        t,
        await preparePythonSdk(version, thisMachine(environment.all), () => undefined),
        [
          join(ROOT, 'test/relay/python/client.py'),
          `ws://127.0.0.1:${proxy.port}/connection/websocket`,
          relayToken({ sub: '42' }),
          'floor:7'
        ],
        { PATH: environment.path }
      )
      await python.waitForLine('"event": "subscribed"', WITHIN_MS)
      await publish('floor:7', { n: 1 })
      await python.waitForLine('"data": {"n": 1}', WITHIN_MS)

      const reconnect = proxy.block('GET /connection/websocket')
      // Code 1 is "transport closed"; the two versions report it as different events.
      await python.waitForLine(/"event": "(?:connecting|disconnected)", "code": 1\b/, WITHIN_MS)
      await publish('floor:7', { n: 2 })
      await publish('floor:7', { n: 3 })
      reconnect()
      await python.waitForLine('"recovered": true, "wasRecovering": true', WITHIN_MS)
      await python.waitForLine('"data": {"n": 3}', WITHIN_MS)
      await publish('floor:7', { n: 4 })
      await python.waitForLine('"data": {"n": 4}', WITHIN_MS)

      const events = python.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { event: string; data?: unknown; offset?: number })
      t.same(
        events.filter(({ event }) => event === 'publication').map(({ data, offset }) => ({ data, offset })),
        [1, 2, 3, 4].map((n) => ({ data: { n }, offset: n }))
      )
    }
  )
}
