import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'
import { scriptArguments } from '../../helper/script.js'

t.test('the images are built, and their programs run as container engines start them', async (t) => {
  const command = scriptArguments('test/all/containers/main.ts')
  const { stdout } = await promisify(execFile)(process.execPath, command, {
    cwd: ROOT,
    env: environment.all,
    maxBuffer: 100_000_000
  })
  t.match(stdout, /all checks passed\n$/)
})
