import type { FastifyRequest } from 'fastify'

/** The query as it came, whatever the framework makes of it. */
export const queryOf = ({ raw }: FastifyRequest): URLSearchParams => {
  const url = raw.url ?? ''
  const start = url.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : url.slice(start + 1))
}
