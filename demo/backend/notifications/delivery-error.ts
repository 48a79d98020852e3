import { errorCode } from '../../../src/shared/error-code.js'

/** Why a notification was not delivered, for people. It never contains what the other server has sent. */
export class DeliveryError extends Error {
  override readonly name = 'DeliveryError'
  /** Whether another attempt is useless. */
  readonly isFinal: boolean

  constructor(message: string, isFinal = false) {
    super(message)
    this.isFinal = isFinal
  }
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'refused the connection'],
  [/ENOTFOUND|EAI_AGAIN|EDNS/, 'cannot be found (the name does not resolve)'],
  [/ETIMEDOUT|TIMEOUT|TimeoutError/, 'does not respond'],
  [/EHOSTUNREACH|ENETUNREACH/, 'cannot be reached'],
  [/SELF_SIGNED|self.signed|UNABLE_TO_|unable to (verify|get)/, 'has a certificate that is not trusted'],
  [/CERT_HAS_EXPIRED|certificate has expired/, 'has an expired certificate'],
  [/ALTNAME|does not match certificate/, 'has a certificate for another name'],
  [/ERR_SSL|EPROTO|wrong version number/, 'does not use TLS as configured'],
  [/bad port/, 'has a port that is reserved for another protocol'],
  [/ECONNRESET|UND_ERR_SOCKET|EPIPE|ECONNECTION|closed/, 'closed the connection']
]

/** Describes an error of the network or of TLS. */
export const connectionError = (error: unknown, host: string): DeliveryError => {
  const facts = factsOf(error).join(' ')
  const [, reason] = REASONS.find(([pattern]) => pattern.test(facts)) ?? []
  const code = errorCode(error)
  return new DeliveryError(`${host} ${reason ?? `cannot be used${code === '' ? '' : ` (${code})`}`}.`)
}

/** The codes and messages of an error and its causes. */
const factsOf = (error: unknown): string[] =>
  error instanceof Error ? [errorCode(error), error.name, error.message, ...factsOf(error.cause)] : []
