// SIGHUP ends a process that has no listener for it. A program therefore listens before it loads other modules; the
// handler is set when startup is complete, which may include waiting for Redis or for workers.

let handler: (() => void) | null = null
let isPending = false

/** Must be the first call of a program. After it, SIGHUP does not end the process. */
export const acceptHangups = (): void => {
  process.on('SIGHUP', () => {
    if (handler === null) isPending = true
    else handler()
  })
}

/** The handler is called for every SIGHUP, and once if there were any during startup. */
export const onHangup = (handle: () => void): void => {
  handler = handle
  if (!isPending) return
  isPending = false
  handle()
}
