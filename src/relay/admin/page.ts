import { answer, TEXT_TYPE } from '../edge/http-answer.js'
import type { AdminCall } from './call.js'
import { SECURITY_HEADERS } from './headers.js'
import { readPageFiles } from './page-files.js'

const NOT_BUILT = "The operators' page was not built. `npm run build` makes it.\n"

/** The built page, for everybody: what it shows comes from the API. Read when it is first asked for. */
export const servePage = (folder: string) => {
  let reading: ReturnType<typeof readPageFiles> | null = null
  const files = async (): ReturnType<typeof readPageFiles> => {
    reading ??= readPageFiles(folder)
    try {
      return await reading
    } catch (error) {
      // As with too many files open: that passes.
      reading = null
      throw error
    }
  }

  return async (call: AdminCall, path: string): Promise<void> => {
    const { request, response } = call
    const found = (await files()).get(path)
    if (found === undefined && path !== '/admin') return call.refuse(404, 'NOT_FOUND', 'There is nothing here.')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return call.refuse(405, 'METHOD_NOT_ALLOWED', 'Only GET is possible here.', ['Allow', 'GET, HEAD'])
    }
    request.resume()
    if (found === undefined) return answer(response, 503, NOT_BUILT, [...TEXT_TYPE, ...call.headers])
    const { bytes, gzipped, headers } = found
    const isSmall = gzipped !== null && takesGzip(request.headers['accept-encoding'])
    const body = isSmall ? gzipped : bytes
    response.writeHead(200, [
      ...headers,
      ...SECURITY_HEADERS,
      ...['Content-Length', String(body.length), 'Vary', 'Accept-Encoding'],
      ...(isSmall ? ['Content-Encoding', 'gzip'] : [])
    ])
    response.end(request.method === 'HEAD' ? undefined : body)
  }
}

const takesGzip = (accepted: string | string[] | undefined): boolean =>
  /(?:^|,) *gzip *(?:,|;(?! *q=0(?:\.0*)? *(?:,|$))|$)/.test(String(accepted ?? ''))
