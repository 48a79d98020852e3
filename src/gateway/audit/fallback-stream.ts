import type { Writable } from 'node:stream'

// Tells these lines from whatever else an error console carries.
const MARKER = '[AUDIT] '

/** How long a stream may take before the records count as lost, so that the next ones can try the file again. */
const PATIENCE_MS = 5000

// Streams that have not taken the last lines yet. They get no more, so that no memory is held for a reader that has stopped.
const stuck = new WeakSet<Writable>()

/** Sends audit lines where the file's would have gone; resolves to whether the stream took them. Never rejects. */
export const sendToFallback = (stream: Writable, lines: readonly string[]): Promise<boolean> => {
  // A stream that has failed or ended may swallow a write without ever calling back.
  if (!stream.writable || stuck.has(stream)) return Promise.resolve(false)
  surviveErrors(stream)
  const text = lines.map((line) => `${MARKER}${line}\n`).join('')
  return new Promise((resolve) => {
    const giveUp = setTimeout(() => {
      stuck.add(stream)
      resolve(false)
    }, PATIENCE_MS)
    const settle = (isTaken: boolean): void => {
      clearTimeout(giveUp)
      stuck.delete(stream)
      resolve(isTaken)
    }
    try {
      stream.write(text, (error) => settle(!error))
    } catch {
      // A stderr that is a file is written synchronously, and its full disk may be thrown instead of called back.
      settle(false)
    }
  })
}

// Once per stream and for good, because an error event may come after the log that caused it was closed. Without a
// listener, a stderr whose reader has gone would end the process.
const survivors = new WeakSet<Writable>()

const surviveErrors = (stream: Writable): void => {
  if (survivors.has(stream)) return
  survivors.add(stream)
  stream.on('error', () => undefined)
}
