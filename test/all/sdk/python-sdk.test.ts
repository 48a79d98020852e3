import { join } from 'node:path'
import t from 'tap'
import { PYTHON_SDK_VERSIONS, preparePythonSdk } from '../../../scripts/lib/python-sdk.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { thisMachine } from '../../../scripts/lib/services.js'
import { environment } from '../../helper/environment.js'
import { checkSdk } from './sdk-scenario.js'

for (const version of PYTHON_SDK_VERSIONS) {
  for (const codec of ['json', 'protobuf']) {
    t.test(
      `the official Python SDK ${version} with ${codec} connects, refreshes, subscribes, publishes, reads and recovers`,
      async (t) => {
        const python = await preparePythonSdk(version, thisMachine(environment.all), () => undefined)
        await checkSdk(t, python, [join(ROOT, 'test/all/sdk/python/client.py'), codec])
      }
    )
  }
}
