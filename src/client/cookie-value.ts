/** The value of a cookie. Null if there is none, or two different ones: a sibling host may have set one of them. */
export const cookieValue = (cookies: string, name: string): string | null => {
  const values = new Set(
    cookies
      .split(';')
      // Not `trim`: it also removes characters that are part of a name.
      .map((cookie) => cookie.replace(/^[ \t]+|[ \t]+$/g, ''))
      .filter((cookie) => cookie.startsWith(`${name}=`))
      .map((cookie) => decoded(cookie.slice(name.length + 1)))
  )
  const [value, conflicting] = values
  return value === undefined || conflicting !== undefined ? null : value
}

/** Decodes once. Invalid encodings are returned unchanged. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
