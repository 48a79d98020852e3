import { join } from 'node:path'
import t from 'tap'
import { prepareJavaSdk } from '../../../scripts/lib/java-sdk.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { java, maven, missingServices, thisMachine } from '../../../scripts/lib/services.js'
import { environment } from '../../helper/environment.js'
import { checkSdk } from './sdk-scenario.js'

const machine = thisMachine(environment.all)
const missing = missingServices([java, maven], machine).map(({ name }) => name)
// Under CI the test fails instead: `npm run test:all` has installed them.
const skip = missing.length > 0 && environment.all.CI !== 'true' ? `missing: ${missing.join(', ')}` : false

t.test(
  'the official Java SDK connects, refreshes, subscribes, publishes, reads and recovers with protobuf',
  { skip },
  async (t) => {
    const jars = join(prepareJavaSdk(machine), '*')
    await checkSdk(t, machine.find('java') ?? 'java', ['-cp', jars, join(ROOT, 'test/all/sdk/java/SdkClient.java')])
  }
)
