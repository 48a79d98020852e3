import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'

const FILE_MODE = 0o640
const FOLDER_MODE = 0o750
const LINE_BREAK = 0x0a

/** What became of one append: how many lines are in the file, and what stopped the rest. */
export interface Appended {
  readonly written: number
  readonly failure: unknown
}

/**
 * A file that only grows by whole lines. Its methods must not overlap: the caller waits for one before the next.
 * After a failure it is closed, and stays so until `open` is called again.
 */
export class AppendFile {
  readonly #path: string
  #handle: FileHandle | undefined
  // The last line in the file has no end: a write of ours, or of a process that died, stopped half-way.
  #torn = false

  constructor(path: string) {
    this.#path = path
  }

  get isOpen(): boolean {
    return this.#handle !== undefined
  }

  /** Opens whatever the path names now, and lets go of what it named before. */
  async open(): Promise<void> {
    await this.close()
    const handle = await openWithFolder(this.#path)
    try {
      this.#torn = await endsInsideLine(handle)
      this.#handle = handle
    } finally {
      if (!this.#handle) await handle.close()
    }
  }

  /** All lines in one write, unless the system takes fewer bytes at a time. Never rejects. */
  async append(lines: readonly string[]): Promise<Appended> {
    const prefix = this.#torn ? '\n' : ''
    const bytes = Buffer.from(`${prefix}${lines.join('\n')}\n`)
    let offset = 0
    try {
      if (!this.#handle) throw new Error('The file is not open')
      while (offset < bytes.length) {
        const { bytesWritten } = await this.#handle.write(bytes, offset, bytes.length - offset, null)
        if (bytesWritten === 0) throw new Error('The file takes no more bytes')
        offset += bytesWritten
      }
      this.#torn = false
      return { written: lines.length, failure: undefined }
    } catch (failure) {
      // The failure that is told is the first one; a second, from closing, says nothing new.
      await this.close().catch(() => undefined)
      return { written: countWhole(lines, offset - prefix.length), failure }
    }
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }
}

const openWithFolder = async (path: string): Promise<FileHandle> => {
  try {
    return await open(path, 'a+', FILE_MODE)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    await makeFolder(dirname(path))
    return await open(path, 'a+', FILE_MODE)
  }
}

// Not by mkdir's own `recursive`: in Node 20 it never returns where a folder exists but its filesystem refuses a new
// one with ENOENT, as /proc does.
const makeFolder = async (folder: string): Promise<void> => {
  const parent = dirname(folder)
  if (parent === folder) return
  await makeFolder(parent)
  try {
    await mkdir(folder, FOLDER_MODE)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

const endsInsideLine = async (handle: FileHandle): Promise<boolean> => {
  const stat = await handle.stat()
  if (!stat.isFile() || stat.size === 0) return false
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(1), 0, 1, stat.size - 1)
  return bytesRead === 1 && buffer[0] !== LINE_BREAK
}

// A line that lacks only its line break counts as written: the next open finds it and supplies the break.
const countWhole = (lines: readonly string[], bytesWritten: number): number => {
  let end = 0
  let whole = 0
  for (const line of lines) {
    end += Buffer.byteLength(line)
    if (end > bytesWritten) break
    whole += 1
    end += 1
  }
  return whole
}
