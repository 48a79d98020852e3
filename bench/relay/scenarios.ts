export const FAN_OUT_SATURATED = 'fan-out, saturated'
export const FAN_OUT_FIXED = 'fan-out, 20 publishes/s'
export const MANY_CHANNELS_SATURATED = '100 channels of 10, saturated'
export const MANY_CHANNELS_FIXED = '100 channels of 10, 500 publishes/s'
export const CONNECT = 'connect + auth + subscribe'
export const MEMORY = 'memory per idle subscribed connection'

/** The unit of each scenario's value. */
export const UNITS: Readonly<Record<string, string>> = {
  [FAN_OUT_SATURATED]: 'CPU µs/delivery',
  [FAN_OUT_FIXED]: 'CPU µs/delivery',
  [MANY_CHANNELS_SATURATED]: 'CPU µs/publish',
  [MANY_CHANNELS_FIXED]: 'CPU µs/publish',
  [CONNECT]: 'CPU µs/client',
  [MEMORY]: 'KiB'
}
