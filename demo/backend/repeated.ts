/** Runs a task every few seconds. A slow database delays the next run instead of queueing runs. */
export const repeated = (task: () => Promise<void>, everyMs: number, onError: (error: unknown) => void) => {
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | null = null
  /** Runs it now, after a run that is under way. */
  const run = (): Promise<void> => {
    const current = (running ?? Promise.resolve())
      .catch(() => undefined)
      .then(task)
      .finally(() => {
        if (running === current) running = null
      })
    running = current
    return current
  }
  return {
    run,
    start: () => {
      timer = setInterval(() => {
        if (running === null) run().catch(onError)
      }, everyMs)
    },
    stop: async () => {
      clearInterval(timer)
      await running?.catch(() => undefined)
    }
  }
}
