import type { ReplyError } from '../core/errors.js'

/** Without `temporary`, which is for clients. */
export const bareErrorJson = ({ code, message }: ReplyError): string =>
  `{"code":${code},"message":${JSON.stringify(message)}}`

export const errorJson = (error: ReplyError): string => `{"error":${bareErrorJson(error)}}`

export const resultJson = (result: string): string => `{"result":${result}}`

const STATUSES: Readonly<Record<number, number>> = {
  100: 500,
  102: 404,
  104: 404,
  106: 400,
  107: 400,
  108: 400,
  112: 416,
  113: 409
}

/** For callers who want errors as statuses. */
export const statusOf = ({ code }: ReplyError): number => STATUSES[code] ?? 500
