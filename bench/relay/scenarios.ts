export const FAN_OUT_SATURATED = 'per delivery: 2.5 KB to 1,000 clients, saturated'
export const FAN_OUT_FIXED = 'per delivery: the same, 20 publishes/s'
export const MANY_CHANNELS_SATURATED = 'per publish: 100 channels of 10 clients, saturated'
export const MANY_CHANNELS_FIXED = 'per publish: the same, 500 publishes/s'
export const CONNECT = 'per client: connect, authenticate, subscribe'

/** The scenarios that measure CPU time, in the order of the report. */
export const CPU_SCENARIOS = [
  FAN_OUT_SATURATED,
  FAN_OUT_FIXED,
  MANY_CHANNELS_SATURATED,
  MANY_CHANNELS_FIXED,
  CONNECT
] as const

/** KiB of memory per idle connection. */
export const MEMORY = 'KiB per idle connection'
