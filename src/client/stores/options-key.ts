/** A text that is equal for equal options. Functions count as equal, so that a component may pass a new one at every render. */
export const optionsKey = (options: object): string =>
  JSON.stringify(options, (_name, value: unknown) => (typeof value === 'function' ? 'function' : value))
