import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The server under test has one core, everything that loads it the other. */
export const SERVER_CORE = '0'
export const LOAD_CORE = '1'

export interface BenchProcess {
  readonly pid: number
  /** The next line of standard output that matches. */
  line(match: RegExp): Promise<RegExpExecArray>
  /** Writes one line to its standard input. */
  tell(text: string): void
  stop(): Promise<void>
}

export const startProcess = (core: string, entry: URL, env: Readonly<Record<string, string>> = {}): BenchProcess => {
  const child = spawn('taskset', ['-c', core, process.execPath, fileURLToPath(entry)], {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
    stdio: ['pipe', 'pipe', 'inherit']
  })
  // taskset replaces itself by the program, so this is the program's own id.
  const pid = child.pid
  if (pid === undefined) throw new Error('cannot start a process: is taskset installed?')
  const lines = readLines(child)
  return {
    pid,
    line: lines,
    tell: (text) => void child.stdin?.write(`${text}\n`),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
  }
}

const readLines = (child: ChildProcess) => {
  const pending: string[] = []
  const waiting = new Set<() => void>()
  let rest = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    // Thousands of log lines that nobody waits for are not worth splitting: this must not cost the machine anything.
    if (waiting.size === 0) {
      rest = ''
      return
    }
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    pending.push(...lines)
    for (const wake of waiting) wake()
  })
  child.once('exit', () => {
    for (const wake of waiting) wake()
  })

  return async (match: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      for (let line = pending.shift(); line !== undefined; line = pending.shift()) {
        const found = match.exec(line)
        if (found !== null) return found
      }
      if (child.exitCode !== null) throw new Error(`a process of the benchmark ended with ${child.exitCode}`)
      await new Promise<void>((resolve) => {
        const wake = () => {
          waiting.delete(wake)
          resolve()
        }
        waiting.add(wake)
      })
    }
  }
}
