// SIGHUP ends a process that has no listener for it. A program therefore listens before it loads anything else, and
// decides later what the signal means: loading the code takes a while, and
// waiting for Redis or for workers may take longer.

let handler: (() => void) | null = null
let isPending = false

/** The first call of a program. From here on SIGHUP does not end the process. */
export const acceptHangups = (): void => {
  process.on('SIGHUP', () => {
    if (handler === null) isPending = true
    else handler()
  })
}

/** Called for every SIGHUP, and once for those that came during start-up. */
export const onHangup = (handle: () => void): void => {
  handler = handle
  if (!isPending) return
  isPending = false
  handle()
}
