/** Longer than a client takes to read a reply, and too short for anybody to see. */
const HEAD_START_MS = 5

/** Tasks of one turn of the event loop share a timer; each runs when its reply has been on its way for a while. */
export const replyHeadStart = (): ((task: () => void) => void) => {
  let ofThisTurn: (() => void)[] | null = null
  return (task) => {
    if (ofThisTurn !== null) {
      ofThisTurn.push(task)
      return
    }
    const tasks = [task]
    ofThisTurn = tasks
    setImmediate(() => {
      ofThisTurn = null
    })
    const run = (): void => {
      for (const each of tasks) each()
    }
    // A loop that was held up for longer still looks at its sockets once before the task.
    setTimeout(() => setImmediate(run), HEAD_START_MS)
  }
}
