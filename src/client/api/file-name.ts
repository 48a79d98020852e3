/** The file name in a Content-Disposition header, without folders; null if there is none. */
export const fileName = (contentDisposition: string | null): string | null => {
  const name = extendedName(contentDisposition ?? '') ?? plainName(contentDisposition ?? '')
  const last = name?.split(/[/\\]/).at(-1)?.trim()
  return last === undefined || last === '' || last === '.' || last === '..' ? null : last
}

/** RFC 8187: `filename*=UTF-8''na%C3%AFve.csv`. */
const extendedName = (header: string): string | null => {
  const [, text] = /;\s*filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(header) ?? []
  if (text === undefined) return null
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

const plainName = (header: string): string | null => {
  const [, quoted, bare] = /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))/i.exec(header) ?? []
  return quoted?.replace(/\\(.)/g, '$1') ?? bare ?? null
}
