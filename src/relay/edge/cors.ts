import type { IncomingMessage } from 'node:http'
import type { Headers } from './http-answer.js'

/** For a page whose origin has been allowed; a program that sends no origin needs none of it. */
export const corsHeaders = ({ headers }: IncomingMessage): Headers => {
  const { origin } = headers
  if (origin === undefined) return []
  const asked = headers['access-control-request-headers']
  return [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Allow-Credentials',
    'true',
    'Vary',
    'Origin',
    ...(asked === undefined ? [] : ['Access-Control-Allow-Headers', asked])
  ]
}

export const PREFLIGHT: Headers = ['Access-Control-Allow-Methods', 'GET, POST', 'Access-Control-Max-Age', '300']
