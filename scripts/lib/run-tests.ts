/**
 * Runs the compiled test files that are its arguments, several at a time, and prints TAP. The command `tap` would load hooks
 * for mocks, TypeScript and coverage into every process, which doubles the time that a small file takes.
 */
import { createWriteStream, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { t } from 'tap'
import { savedOutputOf } from './test-report.js'

const CPU_TIME = new URL('./cpu-time.js', import.meta.url).href

/** Twice the cores of a small machine: most tests wait for processes and sockets part of their time. */
const JOBS = 4
/** For a whole file. The longest takes five minutes on a quiet machine, and ten at a load average of 20 on two cores. */
const TIMEOUT_S = 1200

t.jobs = JOBS
t.setTimeout(0)
t.on('spawn', (file) => {
  const output = savedOutputOf(file.name)
  mkdirSync(dirname(output), { recursive: true })
  file.on('process', ({ stdout }) => stdout.pipe(createWriteStream(output)))
})
const env = { ...process.env, TAP_TIMEOUT: String(TIMEOUT_S) }
for (const file of process.argv.slice(2)) {
  // tap adds its hooks to NODE_OPTIONS of the processes that it starts.
  const command = ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps', `--import=${CPU_TIME}`, file]
  void t.spawn('env', command, { name: file, env, buffered: true, timeout: TIMEOUT_S * 1000 })
}
