/** Longer than a client takes to read a reply, and too short to be noticed by a person. */
const DELAY_MS = 5

/**
 * Returns a function that runs tasks a few milliseconds later, after the client has read the reply that was just written.
 * The tasks of one turn of the event loop share a timer.
 */
export const delayPushAfterReply = (): ((task: () => void) => void) => {
  let currentBatch: (() => void)[] | null = null
  return (task) => {
    if (currentBatch !== null) {
      currentBatch.push(task)
      return
    }
    const batch = [task]
    currentBatch = batch
    setImmediate(() => {
      currentBatch = null
    })
    const run = (): void => {
      for (const each of batch) each()
    }
    // If the event loop was blocked, the immediate gives it one turn to flush sockets before the tasks run.
    setTimeout(() => setImmediate(run), DELAY_MS)
  }
}
