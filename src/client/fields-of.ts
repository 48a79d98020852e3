type Fields = Readonly<Record<string, unknown>>

/** The fields of a JSON object; none for any other value. */
export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {})

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
