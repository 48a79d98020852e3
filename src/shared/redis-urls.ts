export const REDIS_URLS_RULE = 'an address such as redis://host:6379, or a comma list of them'

/** The path may only be a database number. Query and fragment would be ignored, so they are rejected. */
export const areRedisUrls = (text: string): boolean => text.split(',').every((entry) => isRedisUrl(entry.trim()))

const isRedisUrl = (text: string): boolean => {
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return false
  const { hostname, pathname, search, hash, username, password } = new URL(text)
  if (hostname === '' || search !== '' || hash !== '' || !/^(\/\d{0,5})?$/.test(pathname)) return false
  return isDecodable(username) && isDecodable(password)
}

const isDecodable = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Without braces, which select the hash slot in a Redis cluster. */
export const isRedisPrefix = (text: string): boolean => /^[-\w.:]{1,64}$/.test(text)

export const REDIS_PREFIX_RULE = 'up to 64 letters, digits, - _ . and :'
