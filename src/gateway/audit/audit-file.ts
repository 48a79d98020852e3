import { once } from 'node:events'
import { mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import sonicBoom, { type SonicBoom } from 'sonic-boom'
import { errorCode } from '../../shared/error-code.js'

const FILE_MODE = 0o640
const FOLDER_MODE = 0o750
const LINE_BREAK = 0x0a

/** How many lines are completely in the file, and the error that stopped the others. */
export interface AppendResult {
  readonly written: number
  readonly error: unknown
}

/**
 * A file of complete lines, written by SonicBoom. Calls must not overlap. After an error the file is closed until
 * `open` is called again.
 */
export class AuditFile {
  readonly #path: string
  #stream: SonicBoom | null = null
  /** The last line has no line break, because an earlier write was interrupted. The next write begins with one. */
  #isTorn = false

  constructor(path: string) {
    this.#path = path
  }

  get isOpen(): boolean {
    return this.#stream !== null
  }

  /** Opens the file that the path names now, and closes the one that was open. */
  async open(): Promise<void> {
    try {
      await makeFolder(dirname(this.#path))
      if (this.#stream === null) this.#stream = newStream(this.#path)
      else this.#stream.reopen()
      await once(this.#stream, 'ready')
      this.#isTorn = await endsInsideLine(this.#path)
    } catch (error) {
      this.#discard()
      throw error
    }
  }

  async append(lines: readonly string[]): Promise<AppendResult> {
    const stream = this.#stream
    if (stream === null) return { written: 0, error: new Error('the audit file is not open') }
    const prefix = this.#isTorn ? '\n' : ''
    let bytes = -prefix.length
    const countBytes = (count: number): void => {
      bytes += count
    }
    stream.on('write', countBytes)
    try {
      const drained = once(stream, 'drain')
      stream.write(`${prefix}${lines.join('\n')}\n`)
      await drained
      this.#isTorn = false
      return { written: lines.length, error: null }
    } catch (error) {
      this.#discard()
      return { written: completeLines(lines, bytes), error }
    } finally {
      stream.off('write', countBytes)
    }
  }

  async close(): Promise<void> {
    const stream = this.#stream
    this.#stream = null
    if (stream === null) return
    const closed = once(stream, 'close')
    stream.end()
    await closed
  }

  #discard(): void {
    this.#stream?.destroy()
    this.#stream = null
  }
}

const newStream = (path: string): SonicBoom => {
  const stream = new sonicBoom.SonicBoom({ dest: path, append: true, mode: FILE_MODE })
  // Without a listener an error between two calls would end the process. The next call fails with an error of its own.
  return stream.on('error', () => undefined)
}

// SonicBoom could create the folder, but with the default mode. And it uses mkdir's `recursive` option, which in Node.js 20
// never returns if a file system rejects a new folder with ENOENT, as /proc does.
const makeFolder = async (folder: string): Promise<void> => {
  const parent = dirname(folder)
  try {
    await mkdir(folder, FOLDER_MODE)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || parent === folder) throw error
    await makeFolder(parent)
    await mkdir(folder, FOLDER_MODE)
  }
}

const endsInsideLine = async (path: string): Promise<boolean> => {
  const stats = await stat(path)
  if (!stats.isFile() || stats.size === 0) return false
  const file = await open(path, 'r')
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, stats.size - 1)
    return bytesRead === 1 && buffer[0] !== LINE_BREAK
  } finally {
    await file.close()
  }
}

/** A line that lacks only its line break counts as complete: `open` detects it, and the next write adds the break. */
const completeLines = (lines: readonly string[], bytesWritten: number): number => {
  let end = 0
  let complete = 0
  for (const line of lines) {
    end += Buffer.byteLength(line)
    if (end > bytesWritten) break
    complete += 1
    end += 1
  }
  return complete
}
