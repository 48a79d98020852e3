import { pathToFileURL } from 'node:url'

// Runs scripts of the project one after the other in this process, and prints their outcomes. It ends by itself only if none
// of them leaves anything running.

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** The output of a stream until the returned function is called. */
const captured = (stream: NodeJS.WriteStream): (() => string) => {
  const { write } = stream
  let text = ''
  stream.write = (chunk: string | Uint8Array) => {
    text += chunk
    return true
  }
  return () => {
    stream.write = write
    return text
  }
}

const { argv } = process
const commands: readonly (readonly string[])[] = JSON.parse(argv[2] ?? '[]')
const outcomes: Outcome[] = []
for (const [index, [path = '', ...args]] of commands.entries()) {
  process.argv = [argv[0] ?? '', path, ...args]
  process.exitCode = 0
  const [stdout, stderr] = [captured(process.stdout), captured(process.stderr)]
  // With an address of its own, a script runs again; the modules that it imports do not.
  await import(`${pathToFileURL(path)}?${index}`)
  outcomes.push({ code: Number(process.exitCode), stdout: stdout(), stderr: stderr() })
}
process.exitCode = 0
process.stdout.write(JSON.stringify(outcomes))
