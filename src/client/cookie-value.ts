/**
 * The value that a cookie text gives a name. Null where there is none, and where there are two different ones: a
 * neighbouring host may have planted one of them, and which of them is ours cannot be told.
 */
export const cookieValue = (cookies: string, name: string): string | null => {
  const values = new Set(
    cookies
      .split(';')
      // Not `trim`: it also removes characters that are part of a name.
      .map((cookie) => cookie.replace(/^[ \t]+|[ \t]+$/g, ''))
      .filter((cookie) => cookie.startsWith(`${name}=`))
      .map((cookie) => decoded(cookie.slice(name.length + 1)))
  )
  const [value, another] = values
  return value === undefined || another !== undefined ? null : value
}

/** Once, as it was encoded once. What is no encoding is taken as it stands. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
