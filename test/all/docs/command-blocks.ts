import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'

/** A block of shell commands of a page. */
export interface CommandBlock {
  readonly commands: string
  /** Marked with `sh server`: the commands do not return. */
  readonly isServer: boolean
  /** Marked with `sh skip="reason"`: why tests cannot run the block. */
  readonly skipped?: string
}

const BLOCK = /^( *)```sh( server)?(?: skip="([^"]+)")?\n(.*?)^\1```$/gms

/** The shell blocks of a page in order, also those in lists. */
export const commandBlocks = (page: string): CommandBlock[] =>
  [...page.matchAll(BLOCK)].map(([, indent = '', server, skipped, commands = '']) => ({
    commands: commands.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    isServer: server !== undefined,
    ...(skipped !== undefined && { skipped })
  }))

/** Comment lines of a block are the expected output, with `…` for any text. */
export const expectedOutput = (commands: string): string[][] =>
  [...commands.matchAll(/^# (.+)$/gm)].map(([, line = '']) => line.split(' … '))

/** Whether all fragments occur in the output, in this order. */
export const hasFragments = (output: string, fragments: readonly string[]): boolean =>
  fragments.reduce((from, fragment) => {
    const index = from === -1 ? -1 : output.indexOf(fragment, from)
    return index === -1 ? -1 : index + fragment.length
  }, 0) !== -1

/** Generous: on a busy machine the demo takes more than a minute to start. */
const READY_WITHIN_MS = 300_000

/** Runs blocks one after the other as a terminal would: folder, variables and functions are kept. */
export class DocumentedShell {
  readonly #t: Teardown
  readonly #stateFile: string
  readonly #env: readonly string[]

  constructor(t: Teardown, folder: string, env: Readonly<Record<string, string>>) {
    this.#t = t
    const stateFolder = mkdtempSync(join(tmpdir(), 'gatehouse-shell-'))
    t.teardown(() => rmSync(stateFolder, { recursive: true, force: true }))
    this.#stateFile = join(stateFolder, 'state.sh')
    this.#env = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    writeFileSync(this.#stateFile, `cd '${folder}'\n`)
  }

  /** Runs the commands to their end and returns their output. Rejects if one of them fails. */
  async run(commands: string): Promise<string> {
    const save = `{ declare -p | grep -v '^declare -[a-z]*r'; declare -f; echo "cd '$PWD'"; } > '${this.#stateFile}'`
    const shell = this.#spawn(`set -eo pipefail\n${commands}\n${save}`)
    const [output, errors, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
    if (code !== 0) throw new Error(`exit code ${code} of\n${commands}\n${output}\n${errors}`)
    return output
  }

  /** Starts commands that do not return. Resolves when they have printed this text. */
  async start(commands: string, ready = 'listening'): Promise<Server> {
    const shell = this.#spawn(commands)
    let isClosed = false
    const closed = once(shell, 'close').then(() => {
      isClosed = true
    })
    const stop = async (): Promise<void> => {
      // The group, because npx starts the program as its child.
      if (!isClosed && shell.pid !== undefined) process.kill(-shell.pid, 'SIGTERM')
      await closed
    }
    this.#t.teardown(stop)
    let output = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => {
        output += part
      })
    await eventually(() => isClosed || output.includes(ready), {
      label: `"${ready}" in the output of ${commands}`,
      deadlineMs: READY_WITHIN_MS
    })
    if (isClosed) throw new Error(`the program ended:\n${commands}\n${output}`)
    return { stop, output: () => output }
  }

  /** In a process group of its own, without the variables that tap adds to processes of a test. */
  #spawn(commands: string): ChildProcessByStdio<null, Readable, Readable> {
    const restore = readFileSync(this.#stateFile, 'utf8')
    return spawn('env', ['-i', ...this.#env, 'bash', '-c', `${restore}\n${commands}`], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe']
    })
  }
}

export interface Server {
  /** Ctrl-C. */
  stop(): Promise<void>
  /** What it has printed so far. */
  output(): string
}
