/**
 * `npm test`: everything that must hold before a change is shared, cheapest first, up to the first step that fails.
 * `npm test -- test/shared/jwt.test.ts` is for the work in between: arguments go to tap, types and style can wait.
 * `npm run coverage` runs the same tests with a coverage table at the end.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { PYTHON_SDK_VERSIONS, preparePythonSdk } from './python-sdk.js'
import { ROOT } from './root.js'
import { prepareServices, ServicesMissing, services, thisMachine } from './services.js'
import { tapReport } from './tap-report.js'
import { readTap, type TapTotals } from './tap-totals.js'

const TAP = join(ROOT, 'node_modules/.bin/tap')

// The type check leaves what it has compiled. Run as it is, the whole suite takes a quarter less time than through tsx, which
// .taprc puts to use for single files; the other argument takes the place of tsx's.
const COMPILED = '.test-build'
const AS_COMPILED = ['--node-arg=--enable-source-maps']

// A line that ran in part counts as covered, and tsx squeezes a module onto one line. ts-node keeps the lines: it comes
// back when its switch is off and tsx's argument is replaced by another one.
const COVERAGE = [
  '--no-disable-coverage',
  '--allow-incomplete-coverage',
  '--test-env=TAP_TYPE_STRIP_ONLY=0',
  '--node-arg=--enable-source-maps'
]

const NOTHING_RAN: TapTotals = { passed: 0, failed: 1, skipped: 0, todo: 0 }

interface Step {
  readonly name: string
  readonly run: () => Promise<boolean>
}

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const main = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<TapTotals> => {
  const coverage = args[0] === '--coverage'
  const tapArgs = coverage
    ? [...COVERAGE, ...args.slice(1)]
    : args.length > 0
      ? args
      : [...AS_COMPILED, ...compiledTests()]

  const steps: readonly Step[] = [
    { name: 'type check', run: npmRun('typecheck') },
    { name: 'lint', run: npmRun('lint') },
    { name: 'build', run: npmRun('build') },
    { name: 'services', run: async () => haveServices(env) }
  ]
  const wanted = args.length > 0 ? steps.slice(2) : steps

  for (const { name, run } of wanted) {
    say(`== ${name}`)
    if (!(await run())) {
      say(`\n${name} failed, so the steps after it did not run.`)
      return NOTHING_RAN
    }
  }
  say('== tests')
  return runTap(tapArgs, env)
}

const compiledTests = (): string[] =>
  readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join(COMPILED, 'test', file.replace(/\.ts$/, '.js')))
    .toSorted()

/** What a developer would open. */
const sourceName = (file: string): string => file.replace(/^\.test-build\/(.*)\.js$/, '$1.ts')

const npmRun = (script: string) => async (): Promise<boolean> => {
  const child = spawn('npm', ['run', '--silent', script], { cwd: ROOT, stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

const haveServices = (env: NodeJS.ProcessEnv): boolean => {
  try {
    prepareServices(services, thisMachine(env), say)
    for (const version of PYTHON_SDK_VERSIONS) say(`Python SDK ${version}: ${preparePythonSdk(version, env)}`)
    return true
  } catch (error) {
    if (!(error instanceof ServicesMissing)) throw error
    say(error.message)
    return false
  }
}

const runTap = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<TapTotals> => {
  // the last reporter named wins, and raw TAP is the only one that can be counted
  const tap = spawn(TAP, [...args, '--reporter=tap'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    // a group of its own: asked to end, tap leaves its test files running, so they are all ended together
    detached: true
  })
  const exit = once(tap, 'exit')
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      if (tap.pid !== undefined) process.kill(-tap.pid, 'SIGKILL')
    })
  }

  const totals = await readTap(tap.stdout.setEncoding('utf8'), tapReport(say, sourceName))
  const [code, signal] = await exit
  if (code !== 0 && totals.failed === 0) {
    say(`tap itself ended with ${code ?? signal}`)
    totals.failed++
  }
  return totals
}

// a program reads its environment once, here, and hands it on
const totals = await main(process.argv.slice(2), process.env)

if (totals.failed > 0) process.exitCode = 1
if (totals.skipped + totals.todo > 0) say(`${totals.skipped} skipped, ${totals.todo} still to do`)
say(`${totals.passed} passed, ${totals.failed} failed`)
