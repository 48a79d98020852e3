import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import packageFile from '../../package.json' with { type: 'json' }

/** The server under test has one core, and the load generator has the other. */
export const SERVER_CORE = '0'
export const LOAD_CORE = '1'

export interface BenchProcess {
  readonly pid: number
  /** The next line of standard output that matches. */
  line(match: RegExp): Promise<RegExpExecArray>
  /** Writes one line to its standard input. */
  writeLine(text: string): void
  stop(): Promise<void>
}

/** The V8 flags of a program's start script. */
export const flagsOf = (program: 'gateway' | 'relay'): readonly string[] =>
  packageFile.scripts[`start:${program}`].split(' ').filter((word) => word.startsWith('--'))

/** Starts a script with the Node.js of the benchmark. */
export const startProcess = (
  core: string,
  entry: URL,
  env: Readonly<Record<string, string>> = {},
  flags: readonly string[] = []
): BenchProcess =>
  startProgram(core, [process.execPath, ...flags, fileURLToPath(entry)], { NODE_ENV: 'production', ...env })

export const startProgram = (
  core: string,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {}
): BenchProcess => {
  // A file, because reading from a pipe would cost CPU time during the measurement.
  const output = join(mkdtempSync(join(tmpdir(), 'gatehouse-bench-')), 'output')
  const child = spawn('taskset', ['-c', core, ...command], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', openSync(output, 'w'), 'inherit']
  })
  // taskset executes the program, so this is the program's id.
  const pid = child.pid
  if (pid === undefined) throw new Error('cannot start a process: is taskset installed?')
  return {
    pid,
    line: lineReader(child, output),
    writeLine: (text) => void child.stdin?.write(`${text}\n`),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      rmSync(dirname(output), { recursive: true, force: true })
    }
  }
}

const POLL_MS = 20

/** Searches the lines that were not searched before. */
const lineReader = (child: ChildProcess, output: string) => {
  const file = openSync(output, 'r')
  let position = 0
  return async (match: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const chunk = Buffer.alloc(1 << 20)
      const text = chunk.toString('utf8', 0, readSync(file, chunk, 0, chunk.length, position))
      const whole = text.slice(0, text.lastIndexOf('\n') + 1)
      for (const line of whole.split('\n')) {
        position += Buffer.byteLength(line) + 1
        const found = match.exec(line)
        if (found !== null) return found
      }
      // The last part is empty and has no line break.
      position -= 1
      if (child.exitCode !== null) throw new Error(`a process of the benchmark ended with ${child.exitCode}`)
      await setTimeout(POLL_MS)
    }
  }
}
