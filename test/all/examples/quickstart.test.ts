import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { portOf } from '../../helper/address.js'
import { startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { freePort, LOOPBACK } from '../../helper/free-port.js'
import { pythonProgram } from '../sdk/python.js'

t.test('the quickstart in Python says why the relay rejects its publications', async (t) => {
  const relay = createServer((_request, response) => {
    response.end('{"error":{"code":102,"message":"unknown channel"}}')
  })
  await once(relay.listen(0, LOOPBACK), 'listening')
  t.teardown(() => relay.close())
  const backend = await startChild(t, pythonProgram(), [join(ROOT, 'examples/quickstart/backend.py')], {
    PATH: environment.path,
    PORT: `${await freePort()}`,
    PASSWORD: 'x',
    API_SECRET: 'x',
    REALTIME_HMAC_SECRET: 'x',
    REALTIME_API_KEY: 'x',
    REALTIME_PUBLISH_URL: `http://${LOOPBACK}:${portOf(relay)}/api`
  })
  t.match(await backend.waitForLine('publishing failed:'), 'unknown channel')
})
