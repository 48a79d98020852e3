import { type ComputedRef, computed, shallowRef } from 'vue'
import { api } from '../services.js'

interface ProvidersAnswer {
  readonly data: readonly { readonly loginAt: string }[]
}

/**
 * Where one signs in at the identity provider and comes back from; null where there is none. Whom the provider still knows
 * is signed in by the question itself.
 */
export const useProviderLogin = (returnTo: () => string): ComputedRef<string | null> => {
  const loginAt = shallowRef<string | null>(null)
  api.auth.providers<ProvidersAnswer>().then(
    ({ data }) => {
      loginAt.value = data[0]?.loginAt ?? null
    },
    // A password will do.
    () => undefined
  )
  return computed(() => loginAt.value && `${loginAt.value}?returnTo=${encodeURIComponent(returnTo())}`)
}
