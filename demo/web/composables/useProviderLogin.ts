import { computed } from 'vue'
import { api } from '../services.js'
import type { DataResponse } from '../types.js'
import { useLoaded } from './useLoad.js'

/** The address of the login at the identity provider; undefined if none is configured. The request itself exchanges an existing provider session. */
export const useProviderLogin = (returnTo: () => string) => {
  const providers = useLoaded(api.auth.providers<DataResponse<readonly { readonly loginAt: string }[]>>)
  return computed(() => {
    const [provider, another] = providers.data.value ?? []
    // Of several, the user chooses one on a page of the gateway.
    return provider && `${another ? '/auth/oidc/login' : provider.loginAt}?returnTo=${encodeURIComponent(returnTo())}`
  })
}
