/** What becomes of exchanges, as the numbers call it. */
export const EXCHANGE_RESULTS = ['success', 'no_account', 'backend_down', 'provider_ended'] as const

export type ExchangeResult = (typeof EXCHANGE_RESULTS)[number]
