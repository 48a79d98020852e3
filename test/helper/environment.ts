/** What tests may know of the machine they run on; the only file under test/ that reads its environment. */
export const environment = {
  /** For programs that are configured by variables of their own, such as pip. */
  all: process.env,
  path: process.env.PATH ?? '',
  redisUrl: process.env.REDIS_URL || undefined,
  databaseUrl: process.env.DATABASE_URL || undefined,
  chromiumPath: process.env.CHROMIUM_PATH || undefined
} as const
