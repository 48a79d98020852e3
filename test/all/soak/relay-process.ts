import { readFileSync } from 'node:fs'
import type { Child, Exit, Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { freePort, LOOPBACK } from '../../helper/free-port.js'
import { startProgram } from '../../helper/program.js'
import { API_KEY, HMAC_SECRET } from '../../helper/relay-rules.js'

const REQUEST_MS = 2_000
/** Far longer than a start or a shutdown takes on a busy machine. */
export const DEADLINE_MS = 120_000

const EXPECTED_EXITS = 'a process ends only when the test ends it'
const NO_ERRORS = 'the relay has no unexpected errors'

/** On a busy machine a relay may give up its start before Redis responds; true if it has exited for that reason. */
const NO_REDIS = /^relay: cannot start: Redis /m
const START_ATTEMPTS = 5

export interface RelayProcessOptions {
  readonly name: string
  readonly config: string
  readonly env: Readonly<Record<string, string>>
  /** Called for an exit that the test did not cause, and for unexpected errors that the relay has counted. */
  readonly onFailure: (name: string, rule: string, description: string) => void
}

/** One relay, started from the built program, that the test kills, stops, freezes and starts again on the same port. */
export class RelayProcess {
  readonly name: string
  readonly port: number
  readonly url: string
  readonly #t: Teardown
  readonly #options: RelayProcessOptions
  #child: Child | null = null
  #isExitExpected = false

  static async start(t: Teardown, options: RelayProcessOptions): Promise<RelayProcess> {
    const relay = new RelayProcess(t, options, await freePort())
    await relay.start()
    return relay
  }

  private constructor(t: Teardown, options: RelayProcessOptions, port: number) {
    this.#t = t
    this.#options = options
    this.name = options.name
    this.port = port
    this.url = `http://${LOOPBACK}:${port}`
  }

  /** Resolves when the relay is healthy. As a supervisor does, it starts a relay again that did not reach its Redis. */
  async start(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const child = await this.#spawn()
      try {
        await this.healthy()
        return
      } catch (error) {
        if (attempt === START_ATTEMPTS || !NO_REDIS.test(child.stderr)) throw error
      }
    }
  }

  async #spawn(): Promise<Child> {
    const child = await startProgram(this.#t, 'dist/src/relay/main.js', {
      RELAY_PORT: String(this.port),
      RELAY_CONFIG: this.#options.config,
      REALTIME_HMAC_SECRET: HMAC_SECRET,
      REALTIME_API_KEY: API_KEY,
      ...this.#options.env
    })
    this.#isExitExpected = false
    this.#child = child
    void child.exited.then((exit) => this.#exited(child, exit))
    return child
  }

  async healthy(): Promise<void> {
    const child = this.#running
    let hasExited = false
    void child.exited.then(() => {
      hasExited = true
    })
    await eventually(async () => hasExited || (await this.#isResponding()), {
      label: `${this.name} is healthy`,
      deadlineMs: DEADLINE_MS
    })
    if (hasExited) throw new Error(`${this.name} has ended`)
  }

  async kill(): Promise<void> {
    this.#isExitExpected = true
    const child = this.#running
    child.signal('SIGKILL')
    await child.exited
    // Workers end shortly after their primary; the port is free then.
    await eventually(async () => !(await this.#accepts()), {
      label: `the port of ${this.name} is free`,
      deadlineMs: DEADLINE_MS
    })
  }

  /** Sends SIGTERM; an exit code other than 0 is reported. */
  async stop(): Promise<void> {
    this.#isExitExpected = true
    const child = this.#running
    const errors = await this.#unexpectedErrors()
    if (errors > 0) this.#options.onFailure(this.name, NO_ERRORS, `${errors} unexpected errors\n${tail(child.stdout)}`)
    child.signal('SIGTERM')
    const { code, signal } = await child.exited
    if (code !== 0) this.#options.onFailure(this.name, EXPECTED_EXITS, `exit with ${code ?? signal} after SIGTERM`)
  }

  freeze(): void {
    this.#running.signal('SIGSTOP')
  }

  thaw(): void {
    this.#running.signal('SIGCONT')
  }

  /** Reads the config file again. */
  reload(): void {
    this.#running.signal('SIGHUP')
  }

  /** The ids of the processes that the relay has started. */
  workers(): readonly number[] {
    const { pid } = this.#running
    const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    return list === '' ? [] : list.split(' ').map(Number)
  }

  get #running(): Child {
    if (this.#child === null) throw new Error(`${this.name} has not been started`)
    return this.#child
  }

  #exited(child: Child, { code, signal }: Exit): void {
    if (child !== this.#child || this.#isExitExpected || NO_REDIS.test(child.stderr)) return
    const description = `exit with ${code ?? signal}\n${child.stderr}${tail(child.stdout)}`
    this.#options.onFailure(this.name, EXPECTED_EXITS, description)
  }

  /** The count since the start of the relay; 0 if it does not respond. */
  async #unexpectedErrors(): Promise<number> {
    try {
      const response = await fetch(`${this.url}/metrics`, { signal: AbortSignal.timeout(REQUEST_MS) })
      const counts = (await response.text()).matchAll(/^relay_unexpected_errors_total\{.*\} (\d+)$/gm)
      return [...counts].reduce((total, [, count]) => total + Number(count), 0)
    } catch {
      return 0
    }
  }

  async #isResponding(): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(REQUEST_MS) })
      await response.arrayBuffer()
      return response.status === 200
    } catch {
      return false
    }
  }

  async #accepts(): Promise<boolean> {
    try {
      await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(REQUEST_MS) })
      return true
    } catch {
      return false
    }
  }
}

const LAST_LINES = 20

const tail = (text: string): string => text.split('\n').slice(-LAST_LINES).join('\n')
