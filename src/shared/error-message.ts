/** The message of a thrown value, which may be anything. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** A thrown value, which may be anything, as an error. */
export const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
