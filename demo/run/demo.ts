import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { CommandError } from '../../src/cli/command.js'
import { unavailablePorts } from '../../src/cli/dev/ports.js'
import { stopSignal } from '../../src/cli/dev/run-together.js'
import { RunningProgram } from '../../src/cli/dev/running-program.js'
import { DEMO_ACCOUNTS } from '../backend/auth/accounts.js'
import { Progress, secondsText } from './progress.js'
import {
  commandOf,
  healthUrl,
  type Program,
  type Stack,
  type StackOptions,
  stackOf,
  writeRelayConfig
} from './stack.js'
import { StartingPage } from './starting-page.js'

/** Promises of the parts of the build that the programs need. */
interface Build {
  readonly programs: Promise<unknown>
  readonly pages: Promise<unknown>
}

export interface DemoOptions extends Omit<StackOptions, 'folder' | 'buildsPage'> {
  readonly env: NodeJS.ProcessEnv
  readonly print: (line: string) => void
  /** Called when the ports are known to be free, and before the programs start. The signal aborts it. */
  readonly build?: (progress: Progress, signal: AbortSignal) => Build
}

/**
 * Runs gateway, relay and demo backend as child processes and prints the address of the page when all of them answer, until a
 * signal or the end of one of them, which stops the others too. The backend is started again instead. Throws `CommandError`.
 */
export const runDemo = async (options: DemoOptions): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  try {
    await new Demo(folder, options).run()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

class Demo {
  readonly #options: DemoOptions
  readonly #stackOptions: StackOptions
  readonly #progress: Progress
  readonly #running = new Map<string, RunningProgram>()
  readonly #startingPage: StartingPage
  #isStopping = false
  /** Called with the reason to stop. */
  #onEnd: (reason: string) => void = () => undefined

  constructor(folder: string, options: DemoOptions) {
    this.#options = options
    this.#stackOptions = { ...options, folder, buildsPage: options.build !== undefined }
    this.#progress = new Progress(options.print)
    this.#startingPage = new StartingPage(() => this.#progress.lines())
  }

  async run(): Promise<void> {
    const { env, print, build } = this.#options
    const stopped = stopSignal()
    const stack = stackOf(env, this.#stackOptions)
    const unavailable = await unavailablePorts(stack.programs)
    if (unavailable.length > 0) throw new CommandError(unavailable)
    const gateway = stack.programs.find(({ name }) => name === 'gateway')
    const aborted = new AbortController()
    try {
      await this.#startingPage.listen(gateway?.port ?? 0)
      print(`Starting. ${stack.pageUrl} says so until every part answers.`)
      const built = build?.(this.#progress, aborted.signal)
      await writeRelayConfig(stack)
      if ((await Promise.race([built?.programs, stopped])) === 'stopped') return
      const ended = this.#start(stack, built?.pages)
      // Also if one of them ends while another one still starts.
      const first = await Promise.race([ended.ready.then(() => 'ready'), stopped, ended.first])
      if (first === 'ready') print(block(stack))
      const end = await Promise.race([stopped, ended.first])
      if (end !== 'stopped') throw new CommandError([end])
    } finally {
      this.#isStopping = true
      aborted.abort()
      await this.#startingPage.close()
      // Each program stops before the programs that it depends on.
      for (const program of [...this.#running.values()].toReversed()) await program.stop()
    }
  }

  /** Starts all programs; the gateway is the last one, when the others answer and the page is built. */
  #start({ programs, pageUrl }: Stack, pages: Promise<unknown> | undefined) {
    const urls = [...programs.map(healthUrl), `${pageUrl}/api/health/ready`]
    const first = new Promise<string>((resolve) => {
      this.#onEnd = resolve
    })
    const launch = async (program: Program): Promise<void> => {
      const running = this.#launch(program)
      void this.#endOf(program, running).then(this.#onEnd)
      await this.#progress.step(`${program.name} starts`, () => running.ready(), `process ${running.pid}`)
    }
    const behind = programs.filter(({ name }) => name !== 'gateway')
    const start = async (): Promise<void> => {
      await Promise.all([pages, ...behind.map(launch)])
      if (this.#isStopping) return
      await this.#startingPage.close()
      for (const program of programs.filter(({ name }) => name === 'gateway')) await launch(program)
      await this.#progress.step('every part answers', () => answers(urls))
    }
    return { ready: start(), first }
  }

  #launch(program: Program): RunningProgram {
    const { env, print } = this.#options
    const running = new RunningProgram(commandOf(program, env), print)
    this.#running.set(program.name, running)
    return running
  }

  /** Resolves with the reason to stop. A backend that was ready is started again, so that a recovery can be shown. */
  async #endOf(program: Program, running: RunningProgram): Promise<string> {
    const { print } = this.#options
    const description = await running.ended
    const reason = `The ${program.name} ${description}, so the others stop too.`
    if (program.name !== 'backend' || !running.wasReady || this.#isStopping) return reason
    print(`\n  The backend ${description}. It is started again …\n`)
    const startMs = performance.now()
    const next = this.#launch(program)
    // If it ends before it answers, the line below is not printed and the reason is returned.
    void next.ready().then(
      () => print(`\n  The backend answers again, after ${secondsText(performance.now() - startMs)}.\n`),
      () => undefined
    )
    return this.#endOf(program, next)
  }
}

const POLL_MS = 200
const MAX_POLLS = 300
const ANSWER_WITHIN_MS = 2000

const isOk = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }).then(
    ({ ok }) => ok,
    () => false
  )

/** Resolves when all addresses answer at the same time; the one of the gateway, if it reaches the backend. */
const answers = async (urls: readonly string[]): Promise<void> => {
  for (let polls = 0; polls < MAX_POLLS; polls += 1) {
    if ((await Promise.all(urls.map(isOk))).every(Boolean)) return
    await delay(POLL_MS)
  }
  throw new CommandError([`Not all parts answer: ${urls.join(', ')}.`])
}

const block = ({ pageUrl, adminUrl, adminPassword, demoPassword, hasPage, hasProvider }: Stack): string =>
  [
    '',
    '  Gatehouse is running.',
    '',
    `  Page      ${pageUrl}${hasPage ? '' : '  (no page is built here; the API is under /api)'}`,
    `  Accounts  ${DEMO_ACCOUNTS.map(({ email }) => email).join(', ')}`,
    `  Password  ${demoPassword}`,
    ...(hasProvider ? [`  Provider  ${pageUrl}/auth/oidc/login  (choose an account there, no password)`] : []),
    `  Relay     ${adminUrl}  password ${adminPassword}`,
    '  Stop      Ctrl-C',
    ''
  ].join('\n')
