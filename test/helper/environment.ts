/** The variables with which npm reaches the registry of this machine. */
const NETWORK = /^(?:https?_proxy|no_proxy|node_extra_ca_certs|npm_config_(?:registry|cafile))$/i

/** The environment of the test run. No other file under test/ reads it. */
export const environment = {
  /** For programs with their own variables, such as pip. */
  all: process.env,
  path: process.env.PATH ?? '',
  network: Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value = '']) => (NETWORK.test(name) ? [[name, value]] : []))
  ),
  redisUrl: process.env.REDIS_URL || undefined,
  /** `npm test -- --valkey` sets it. */
  redisProgram: process.env.REDIS_PROGRAM || undefined,
  /** How long instances are restarted in turn; `npm run test:restarts` sets it. Otherwise each one is restarted once. */
  restartSeconds: Number(process.env.RESTART_SECONDS ?? 0),
  /** The share of the stated inputs that a property is checked with. The inputs differ from run to run. */
  propertyShare: Number(process.env.PROPERTY_SHARE || 0.1),
  /** Runs of the model test of maps at each engine. */
  mapModelRuns: Number(process.env.MAP_MODEL_RUNS || 12),
  /** Multiplies the interleavings of model tests. */
  modelFactor: Number(process.env.MODEL_FACTOR || 1),
  /** Repeats the runs of a model test that has failed. */
  modelSeed: process.env.MODEL_SEED ? Number(process.env.MODEL_SEED) : undefined,
  chromiumPath: process.env.CHROMIUM_PATH || undefined,
  firefoxPath: process.env.FIREFOX_PATH || undefined
} as const
