import type { AppSession } from '../session/app-session.js'

/** The kinds of results of an exchange: the label `result` of its metric has these values. */
export const EXCHANGE_RESULTS = [
  'success',
  'no_account',
  /** Not known whether there is an account: the backend is unavailable, overloaded or sent an unusable response. */
  'backend_down',
  /** The provider session has ended. */
  'provider_ended'
] as const

export type ExchangeResultKind = (typeof EXCHANGE_RESULTS)[number]

/** The result of an exchange. Gateways share it through Redis. */
export type ExchangeResult =
  | { readonly kind: 'success'; readonly session: AppSession }
  | { readonly kind: Exclude<ExchangeResultKind, 'success'> }
