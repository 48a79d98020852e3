/** The part of a logger that the relay uses. Messages are constant; the facts are fields. pino implements it. */
export interface Log {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}
