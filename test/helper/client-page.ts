import { type ApiOptions, createApi } from '../../src/client/api/api.js'
import type { Api } from '../../src/client/api/operations.js'
import type { Teardown } from './child.js'
import { type CookieJar, cookieJar } from './cookie-jar.js'
import { startGateway, type TestGateway, type TestGatewayOptions, tokenOf } from './gateway.js'
import { TestXhr } from './xhr.js'

export interface ClientPage extends TestGateway {
  readonly api: Api
  readonly jar: CookieJar
  /** Stores session cookies in the jar, as a login does. */
  signIn(): void
}

/** A signed-in page and a listening gateway. */
export const openPage = async (
  t: Teardown,
  options: TestGatewayOptions = {},
  apiOptions: (jar: CookieJar) => ApiOptions = () => ({})
): Promise<ClientPage> => {
  const gateway = await startGateway(t, options)
  const jar = cookieJar()
  const signIn = (): void => jar.keep([`auth_token=${tokenOf('admin')}; HttpOnly`])
  signIn()
  const api = createApi({
    baseUrl: gateway.url,
    fetch: jar.fetch,
    cookies: () => jar.readable,
    newXhr: () => new TestXhr(jar),
    ...apiOptions(jar)
  })
  return { ...gateway, api, jar, signIn }
}
