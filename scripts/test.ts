/** `npm test` and `npm run test:all`: compile, build, install services, then run the tests with lint beside them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand, UsageError, UserError } from './lib/command.js'
import { prepareHelm } from './lib/kubernetes-tools.js'
import { installNode } from './lib/node-version.js'
import { ROOT } from './lib/root.js'
import { prepareServices, servicesFor, thisMachine } from './lib/services.js'

/** Tests that `npm test` omits: each folder is a part of `npm run test:all`, and so are the tests of the demo. */
const OUTER = 'test/all'
const DEMO = 'demo/test'

const USAGE = `Usage: npm test [-- [--node <version>] [--valkey] [<test file or folder> ...]]
       npm run test:all [-- [--node <version>] [--kubernetes] [<part> ...]]
       npm run coverage [-- [<test file or folder> ...]]

\`npm test\` checks the product: all tests in test/ except those in ${OUTER}, with type check and lint. With files, only these.
\`npm run test:all\` also runs the tests in ${OUTER} and ${DEMO}; with parts, only these: a folder of ${OUTER}, or demo.

  --node <version>  run on Node.js 20, 22, 24 or 26, installed from the npm package "node" into node_modules/.cache
  --valkey          use Valkey in place of Redis
  --kubernetes      build Helm from source if it is not on the PATH, so that the tests of the chart run
  --coverage        print a coverage table after the tests`

const TAP = join(ROOT, 'node_modules/.bin/tap')

/** The type check emits JavaScript, which runs in half the CPU time of tap with tsx. */
const COMPILED = '.test-build'
const RUN_GROUPS = join(COMPILED, 'scripts/lib/run-groups.js')

const main = async (args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> => {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      all: { type: 'boolean', default: false },
      node: { type: 'string' },
      coverage: { type: 'boolean', default: false },
      valkey: { type: 'boolean', default: false },
      kubernetes: { type: 'boolean', default: false }
    },
    allowPositionals: true
  })
  const files = selectFiles(values.all, positionals)
  const env = {
    ...(values.node === undefined ? processEnv : withPath(installNode(values.node, processEnv, print), processEnv)),
    ...(values.valkey && { REDIS_URL: '', REDIS_PROGRAM: 'valkey-server' })
  }

  await prepare(files, values, env)
  print('== build')
  await runScripts(['compile:tests', 'build'], env)
  replaceTap()

  print('== tests')
  // Neither makes anything that the tests need.
  const checks = positionals.length > 0 || values.coverage ? [] : ['lint', 'typecheck:pages']
  const [code, failed] = await Promise.all([
    values.coverage ? runCoverage(files, env) : runTests(files, env),
    failingScripts(checks, env)
  ])
  for (const script of failed) print(`npm run ${script} failed.`)
  return failed.length > 0 ? 1 : code
}

/** The test files of a command, as paths in the project. */
const selectFiles = (isAll: boolean, names: readonly string[]): string[] => {
  if (isAll) return (names.length > 0 ? names.map(folderOfPart) : ['test', DEMO]).flatMap(testFiles)
  if (names.length > 0) return names.flatMap(testFiles)
  return testFiles('test').filter((file) => !file.startsWith(`${OUTER}/`))
}

const folderOfPart = (part: string): string => {
  if (part === 'demo') return DEMO
  const parts = readdirSync(join(ROOT, OUTER))
  if (!parts.includes(part)) throw new UsageError(`${part} is not a part: ${[...parts, 'demo'].join(', ')}`)
  return `${OUTER}/${part}`
}

const testFiles = (name: string): string[] => {
  const path = relative(ROOT, join(ROOT, name))
  if (!existsSync(join(ROOT, path))) throw new UsageError(`${name} does not exist`)
  if (!statSync(join(ROOT, path)).isDirectory()) return [path]
  const files = readdirSync(join(ROOT, path), { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.test.ts'))
    .toSorted()
    .map((file) => join(path, file))
}

/** Installs what the tests need. */
const prepare = async (
  files: readonly string[],
  { valkey, kubernetes }: { readonly valkey: boolean; readonly kubernetes: boolean },
  env: NodeJS.ProcessEnv
): Promise<void> => {
  print('== services')
  const machine = thisMachine(env)
  await prepareServices(servicesFor(files, valkey), machine, print)
  if (kubernetes) print(`Helm: ${await prepareHelm(machine, print)}`)
}

/** Compiled test files find this package in place of tap, see `file-test.ts`. */
const replaceTap = (): void => {
  for (const part of ['test', 'demo']) {
    const folder = join(COMPILED, part, 'node_modules/tap')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module", "exports": "./index.js" }\n')
    writeFileSync(join(folder, 'index.js'), "export { t, t as default } from '../../../scripts/lib/file-test.js'\n")
  }
}

const compiled = (file: string): string => join(COMPILED, file.replace(/\.ts$/, '.js'))

/** Runs the files with tap's reporter. Resolves with the exit code. */
const runTests = async (files: readonly string[], env: NodeJS.ProcessEnv): Promise<number> => {
  const tests = spawn('node', [RUN_GROUPS, ...files.map(compiled)], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    // In a process group of its own: on a signal the whole group is killed, with the programs that the tests started.
    detached: true
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => tests.pid !== undefined && process.kill(-tests.pid, 'SIGKILL'))
  }
  const reporter = spawn(TAP, ['--reporter=terse', '-'], {
    cwd: ROOT,
    // tap redraws its lines also where there is no terminal, except with this.
    env: process.stdout.isTTY ? env : { ...env, CI: 'true' },
    stdio: ['pipe', 'inherit', 'inherit']
  })
  tests.stdout.pipe(reporter.stdin)
  const codes = await Promise.all([tests, reporter].map(exitCode))
  return Math.max(...codes)
}

/** tap measures the coverage of the processes that it starts, with its module loaders in them. */
const runCoverage = async (files: readonly string[], env: NodeJS.ProcessEnv): Promise<number> => {
  const options = ['--no-disable-coverage', '--allow-incomplete-coverage', '--timeout=7200', '--reporter=terse']
  const excluded = ['test', 'demo/test', 'scripts'].map((folder) => `--coverage-exclude=${COMPILED}/${folder}/**`)
  const testArgs = files.map((file) => `--test-arg=${compiled(file)}`)
  const args = [...options, ...excluded, ...testArgs, RUN_GROUPS]
  return exitCode(spawn(TAP, args, { cwd: ROOT, env, stdio: 'inherit' }))
}

const exitCode = async (child: ChildProcess): Promise<number> => {
  const [code] = await once(child, 'close')
  return code ?? 1
}

const withPath = (folder: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...env,
  PATH: [folder, env.PATH].join(delimiter)
})

/** Runs scripts of package.json at the same time, because each of them uses one core. */
const runScripts = async (scripts: readonly string[], env: NodeJS.ProcessEnv): Promise<void> => {
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
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const code = await exitCode(child)
  if (output.trim() !== '') print(output.trimEnd())
  return code === 0
}

await runCommand(USAGE, (args) => main(args, process.env))
