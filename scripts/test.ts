/** `npm test`: compiles, builds and prepares services, then runs the tests with lint beside them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { delimiter, join, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand, UsageError, UserError } from './lib/command.js'
import { prepareJavaSdk } from './lib/java-sdk.js'
import { hasHelm, prepareCrds, prepareHelm, prepareKubernetesSchemas } from './lib/kubernetes-tools.js'
import { installNode } from './lib/node-version.js'
import { PYTHON_SDK_VERSIONS, preparePythonSdk } from './lib/python-sdk.js'
import { ROOT } from './lib/root.js'
import { runTests } from './lib/run-tests.js'
import { java, maven, missingServices, prepareServices, redis, services, thisMachine, valkey } from './lib/services.js'
import type { TestTotals } from './lib/tap-results.js'
import { costReport, minutes, savedCosts, TEST_RESULTS } from './lib/test-cost.js'
import { testReport } from './lib/test-report.js'

const USAGE = `Usage: npm test [-- [--node <version>] [--valkey] [--kubernetes] [<test file or folder> ...]]
       npm run coverage [-- [<test file or folder> ...]]

Without files: build, services, all tests, type check and lint. With files: build, services, these tests.

  --node <version>  run on Node.js 20, 22, 24 or 26, installed from the npm package "node" into node_modules/.cache
  --valkey          use Valkey in place of Redis
  --kubernetes      build Helm from source if it is not on the PATH, so that the tests of the chart run
  --coverage        print a coverage table after the tests`

const TAP = join(ROOT, 'node_modules/.bin/tap')

// The type check emits JavaScript. The complete suite runs that, in half the time that tap and tsx would take, which are for
// single files.
const COMPILED = '.test-build'
const RUN_FILES = join(COMPILED, 'scripts/lib/run-files.js')

/**
 * V8 optimizes functions thirty times later than by default. Few functions of a test run long enough to make up for the
 * CPU time of optimizing them; this saves a fifth of it. Tests pass the option on to the programs that they start.
 */
const LATE_OPTIMIZATION = '--interrupt-budget=4000000'

/** Each test leaves a server's worth of garbage: a larger young generation saves a tenth of the CPU time. */
const YOUNG_GENERATION = ['--min-semi-space-size=32', '--max-semi-space-size=64']
const NODE_OPTIONS = ['--enable-source-maps', LATE_OPTIMIZATION, ...YOUNG_GENERATION]

/** Test files of one part, such as the relay, that run in one process: loading the part costs more than most files. */
const GROUP_SIZE = 12

/**
 * The files that take longest, longest first. Each has a process of its own. They are spread over the first half of the run,
 * because the others wait for processes and sockets most of their time.
 */
const LONGEST = [
  'demo/test/e2e/page.test.ts',
  'test/docs/redis-high-availability.test.ts',
  'test/docs/page-commands.test.ts',
  'demo/test/e2e/plans.test.ts',
  'demo/test/e2e/alarm.test.ts',
  'demo/test/e2e/office.test.ts',
  'test/tracing.test.ts',
  'test/e2e/admin.test.ts',
  'test/deploy/release.test.ts',
  'test/deploy/rolling-restart.test.ts',
  'test/scripts/start.test.ts',
  'test/relay/engine/redis-sentinel.test.ts',
  'test/soak/soak.test.ts',
  'demo/test/e2e/monitoring.test.ts',
  'test/gateway/main.test.ts',
  'test/relay/redis-outages.test.ts',
  'test/relay/live-state-model.test.ts',
  'demo/test/e2e/identity-provider.test.ts',
  'test/examples/examples.test.ts',
  'test/examples/frameworks.test.ts',
  'demo/test/databases.test.ts',
  'test/docs/demo-tutorial.test.ts',
  'test/cli/client-api.test.ts'
]

/** Files that count the objects of their process. */
const ALONE = ['test/relay/warm-up.test.ts']

// tsx prints a module on one line, where a line that ran in part counts as covered. ts-node keeps the lines: it is active
// when its switch is off and the argument of tsx is replaced.
const COVERAGE_ARGUMENTS = [
  '--no-disable-coverage',
  '--allow-incomplete-coverage',
  '--test-env=TAP_TYPE_STRIP_ONLY=0',
  '--node-arg=--enable-source-maps'
]

const main = async (args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> => {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      node: { type: 'string' },
      coverage: { type: 'boolean', default: false },
      valkey: { type: 'boolean', default: false },
      kubernetes: { type: 'boolean', default: false }
    },
    allowPositionals: true
  })
  const files = positionals.flatMap(testFiles)
  const env = {
    ...(values.node === undefined ? processEnv : withPath(installNode(values.node, processEnv, print), processEnv)),
    ...(values.valkey && { REDIS_URL: '', REDIS_PROGRAM: 'valkey-server' })
  }

  const isPartial = files.length > 0 || values.coverage
  const scripts = isPartial ? ['build'] : ['compile:tests', 'build']
  // The services wait for downloads while the compilers use the cores.
  await Promise.all([runScripts(scripts, env), prepare(values, env)])

  print('== tests')
  if (!isPartial) return runSuite(env)
  const coverage = values.coverage ? COVERAGE_ARGUMENTS : []
  const command = [TAP, ...coverage, ...files, '--reporter=tap']
  return report(await runTests([command], { env, listener: testReport(print), print }))
}

/** Installs what the tests need. */
const prepare = async (
  { valkey: isValkey, kubernetes }: { readonly valkey: boolean; readonly kubernetes: boolean },
  env: NodeJS.ProcessEnv
): Promise<void> => {
  print('== services')
  const machine = thisMachine(env)
  const required = isValkey ? services.map((service) => (service === redis ? valkey : service)) : services
  await prepareServices(required, machine, print)
  for (const version of PYTHON_SDK_VERSIONS)
    print(`Python SDK ${version}: ${await preparePythonSdk(version, machine, print)}`)
  if (kubernetes || hasHelm(machine)) {
    print(`Helm: ${await prepareHelm(machine, print)}`)
    print(`Kubernetes schemas: ${await prepareKubernetesSchemas(machine, print)}`)
    print(`CRDs: ${(await prepareCrds(machine, print)).join(', ')}`)
    // Building Helm takes minutes and a Go module proxy.
  } else print('Helm: not installed. Its tests are skipped; `npm test -- --kubernetes` builds it.')
  if (missingServices([java, maven], machine).length === 0) print(`Java SDK: ${prepareJavaSdk(machine)}`)
}

/** Runs all compiled test files and reports their cost, with lint beside them. Resolves with the exit code. */
const runSuite = async (env: NodeJS.ProcessEnv): Promise<number> => {
  const groups = compiledTests()
  replaceTap()
  rmSync(TEST_RESULTS, { recursive: true, force: true })
  const startedAt = performance.now()
  const machineBefore = machineCpuSeconds()
  // The summary of each process is omitted.
  const listener = { ...testReport(print, sourceName), runner() {} }
  const commands = groups.map((files) => ['node', ...NODE_OPTIONS, RUN_FILES, ...files])
  const [totals, failedScripts] = await Promise.all([
    runTests(commands, { env, listener, print }),
    // Neither makes anything that the tests need.
    failingScripts(['lint', 'typecheck:pages'], env)
  ])
  print(`The tests took ${minutes((performance.now() - startedAt) / 1000)}.`)
  // Browsers have processes whose CPU time is not in that of the test files.
  print(`CPU time of the machine: ${minutes(machineCpuSeconds() - machineBefore)}, lint and other programs included.`)
  for (const line of costReport(savedCosts(groups.flat()), sourceName)) print(line)
  for (const script of failedScripts) print(`npm run ${script} failed.`)
  return failedScripts.length > 0 ? Math.max(report(totals), 1) : report(totals)
}

const machineCpuSeconds = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1000

/** Compiled test files find this package in place of tap, see `file-test.ts`. */
const replaceTap = (): void => {
  for (const part of ['test', 'demo']) {
    const folder = join(COMPILED, part, 'node_modules/tap')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module", "exports": "./index.js" }\n')
    writeFileSync(join(folder, 'index.js'), "export { t, t as default } from '../../../scripts/lib/file-test.js'\n")
  }
}

const testFiles = (path: string): string[] => {
  if (!existsSync(path)) throw new UsageError(`${path} does not exist`)
  return statSync(path).isDirectory() ? testFilesIn(path).map((file) => join(path, file)) : [path]
}

const testFilesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .toSorted()

/** Groups of compiled test files in the order in which they start. */
const compiledTests = (): string[][] => {
  const all = ['test', 'demo/test'].flatMap((folder) =>
    testFilesIn(join(ROOT, folder)).map((file) => join(folder, file))
  )
  const longest = LONGEST.filter((file) => all.includes(file))
  const grouped = all.filter((file) => !longest.includes(file) && !ALONE.includes(file))
  // The files of the client take least time. At the end of the run they keep all cores busy.
  const others = [...ALONE.map((file) => [file]), ...groupsOf(grouped).toReversed()]
  const othersBefore = (index: number): number => Math.floor((index / longest.length) * (others.length / 2))
  const between = longest.flatMap((file, index) => [
    [file],
    ...others.slice(othersBefore(index), othersBefore(index + 1))
  ])
  const groups = [...between, ...others.slice(othersBefore(longest.length))]
  return groups.map((group) => group.map((file) => join(COMPILED, file.replace(/\.ts$/, '.js'))))
}

const groupsOf = (files: readonly string[]): string[][] => {
  const groups: string[][] = []
  for (const file of files) {
    const last = groups.at(-1)
    if (last === undefined || last.length === GROUP_SIZE || partOf(last[0] ?? '') !== partOf(file)) groups.push([file])
    else last.push(file)
  }
  return groups
}

const partOf = (file: string): string => file.split(sep, 2).join(sep)

/** The source file of a compiled test. */
const sourceName = (file: string): string => file.replace(/^\.test-build\/(.*)\.js$/, '$1.ts')

const withPath = (folder: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...env,
  PATH: [folder, env.PATH].join(delimiter)
})

/** Runs scripts of package.json at the same time, because each of them uses one core. */
const runScripts = async (scripts: readonly string[], env: NodeJS.ProcessEnv): Promise<void> => {
  print(`== ${scripts.join(', ')}`)
  const failed = await failingScripts(scripts, env)
  if (failed.length > 0) throw new UserError(`\n${failed.join(', ')} failed, so the tests did not run.`)
}

/** Resolves with the names of those that failed. */
const failingScripts = async (scripts: readonly string[], env: NodeJS.ProcessEnv): Promise<string[]> => {
  const results = await Promise.all(scripts.map((script) => npmRun(script, env)))
  return scripts.filter((_, index) => !results[index])
}

/** Prints the output when the script has ended, so that outputs do not mix. Resolves with its success. */
const npmRun = async (script: string, env: NodeJS.ProcessEnv): Promise<boolean> => {
  const child = spawn('npm', ['run', '--silent', script], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = await closed
  if (output.trim() !== '') print(output.trimEnd())
  return code === 0
}

/** Prints the totals. Returns the exit code. */
const report = (totals: TestTotals): number => {
  print(summary(totals))
  return totals.failed > 0 ? 1 : 0
}

const summary = ({ passed, failed, skipped, todo }: TestTotals): string =>
  [
    `${passed + failed} tests: ${passed} passed, ${failed} failed`,
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(todo > 0 ? [`${todo} to do`] : [])
  ].join(', ')

await runCommand(USAGE, (args) => main(args, process.env))
