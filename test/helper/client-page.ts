import { type CallerOptions, createCaller } from '../../src/client/api/caller.js'
import { createBuildingApi } from '../../src/client/buildings/api/building-api.js'
import type { Api } from '../../src/client/buildings/api/operations.js'
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
  callerOptions: (jar: CookieJar) => CallerOptions = () => ({})
): Promise<ClientPage> => {
  const gateway = await startGateway(t, { hasAllRoutes: true, ...options })
  const jar = cookieJar()
  const signIn = (): void => jar.keep([`auth_token=${tokenOf('admin')}; HttpOnly`])
  signIn()
  const call = createCaller({
    baseUrl: gateway.url,
    fetch: jar.fetch,
    cookies: () => jar.readable,
    newXhr: () => new TestXhr(jar),
    ...callerOptions(jar)
  })
  return { ...gateway, api: createBuildingApi(call), jar, signIn }
}
