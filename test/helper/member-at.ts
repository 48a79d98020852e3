/** The member of an object at this path, or undefined. */
export const memberAt = (root: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, name) =>
      typeof value === 'function' || (typeof value === 'object' && value !== null)
        ? Reflect.get(value, name)
        : undefined,
    root
  )
