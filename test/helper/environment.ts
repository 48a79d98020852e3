/** The environment of the test run. No other file under test/ reads it. */
export const environment = {
  /** For programs with their own variables, such as pip. */
  all: process.env,
  path: process.env.PATH ?? '',
  redisUrl: process.env.REDIS_URL || undefined,
  databaseUrl: process.env.DATABASE_URL || undefined,
  chromiumPath: process.env.CHROMIUM_PATH || undefined
} as const
