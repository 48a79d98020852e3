/** One line for each error and warning; without errors the configuration is valid. */
export interface CheckResult {
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}
