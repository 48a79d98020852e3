import type { RelayConfig } from './config.js'

/** What follows from the config, made anew when the operator has reloaded it and not for every request. */
export const latest = <T>(config: () => RelayConfig, make: (config: RelayConfig) => T): (() => T) => {
  let of = config()
  let made = make(of)
  return () => {
    const now = config()
    if (now !== of) {
      of = now
      made = make(now)
    }
    return made
  }
}
