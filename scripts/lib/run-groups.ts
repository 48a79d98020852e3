/**
 * Runs the compiled test files in its arguments in a few processes and prints their TAP. tap starts the processes, several
 * at a time. They get none of the module loaders that the command `tap` adds, which double the CPU time of most files and
 * also slow down the programs that the tests start.
 */
import { ChildProcess } from 'node:child_process'
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { t } from 'tap'

const RUN_FILES = fileURLToPath(new URL('run-files.js', import.meta.url))

/** Twice the cores of a small machine: tests wait for processes, sockets and timers at times. */
const JOBS = 4

/** Files of one part, such as the relay, in one process: loading the part costs more than most files. */
const GROUP_SIZE = 12

/**
 * V8 optimizes functions thirty times later than by default. Few functions of a test run long enough to make up for the
 * CPU time of optimizing them; this saves a fifth of it. Tests pass the option on to the programs that they start.
 */
const LATE_OPTIMIZATION = '--interrupt-budget=4000000'

/** Each test leaves a server's worth of garbage: a larger young generation saves a tenth of the CPU time. */
const YOUNG_GENERATION = ['--min-semi-space-size=32', '--max-semi-space-size=64']

const NODE_OPTIONS = ['--enable-source-maps', LATE_OPTIMIZATION, ...YOUNG_GENERATION]

/** `test/relay` of `.test-build/test/relay/core/hub.test.js`, `test/all/sdk` and `demo/test/e2e`. */
const partOf = (file: string): string => {
  const [, ...folders] = dirname(file).split('/')
  return folders.slice(0, folders[0] === 'demo' || folders[1] === 'all' ? 3 : 2).join('/')
}

/** Tests that start programs and wait for them or for a browser have a process each: they load little themselves. */
const HAS_PROCESS_PER_FILE = /^test\/all\/|\/e2e$/

interface Group {
  readonly name: string
  readonly files: readonly string[]
  readonly size: number
}

/** Groups of equal size, each with files from all over the part. */
const groupsOf = (part: string, files: readonly string[]): Group[] => {
  const count = Math.ceil(files.length / (HAS_PROCESS_PER_FILE.test(part) ? 1 : GROUP_SIZE))
  return Array.from({ length: count }, (_, index) => {
    const own = files.filter((_, position) => position % count === index)
    return { name: `${part} ${index + 1}`, files: own, size: own.reduce((sum, file) => sum + statSync(file).size, 0) }
  })
}

const files = process.argv.slice(2)
const parts = [...new Set(files.map(partOf))]
const groups = parts.flatMap((part) =>
  groupsOf(
    part,
    files.filter((file) => partOf(file) === part)
  )
)

t.setTimeout(0)
t.jobs = JOBS
t.on('subtestAdd', (group) => {
  // Reports the file of a process that cannot report it itself.
  group.on('process', (child) => {
    if (!(child instanceof ChildProcess)) return
    let file = group.name
    child.on('message', (message) => {
      if (typeof message === 'object' && 'file' in message) file = String(message.file)
    })
    child.on('exit', (_, signal) => signal !== null && process.stderr.write(`\nFAILED ${file}: killed by ${signal}\n`))
  })
})
// The longest ones first, so that the last ones end at about the same time.
for (const { name, files } of groups.toSorted((a, b) => b.size - a.size))
  t.spawn(process.execPath, [...NODE_OPTIONS, RUN_FILES, ...files], { buffered: true, name })
