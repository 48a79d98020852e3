/** The headers that the gateway adds to every response. */
export type HeaderTable = Readonly<Record<string, string>>
