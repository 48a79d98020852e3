import type { Test } from 'tap'
import { browserHeaders } from './gateway.js'

/** One of the two kinds of routes through the gateway. */
export interface RouteKind {
  readonly name: string
  /** For reads and for `PUT`. */
  readonly path: string
  /** For `POST` with a multipart form. */
  readonly upload: string
  /** Every method with a path that accepts it. */
  readonly methods: readonly (readonly [method: string, path: string])[]
}

export const ROUTE_KINDS: readonly RouteKind[] = [
  {
    name: 'a typed route',
    path: '/api/zones/7',
    upload: '/api/floors/7/upload',
    methods: [
      ['GET', '/api/zones/7'],
      ['POST', '/api/zones'],
      ['PUT', '/api/zones/7'],
      ['PATCH', '/api/transmitters/7'],
      ['DELETE', '/api/zones/7']
    ]
  },
  {
    name: 'the catch-all',
    path: '/api/unknown/7',
    upload: '/api/unknown/7/upload',
    methods: [
      ['GET', '/api/unknown/7'],
      ['HEAD', '/api/unknown/7'],
      ['HEAD', '/api/zones/7'],
      ['OPTIONS', '/api/unknown/7'],
      ['OPTIONS', '/api/zones/7'],
      ['POST', '/api/unknown'],
      ['PUT', '/api/unknown/7'],
      ['PATCH', '/api/unknown/7'],
      ['DELETE', '/api/unknown/7']
    ]
  }
]

/** Runs the same tests for both kinds of routes. */
export const forBothRouteKinds = (
  t: Test,
  name: string,
  tests: (t: Test, routeKind: RouteKind) => Promise<void>
): void => {
  for (const routeKind of ROUTE_KINDS) void t.test(`${name}, through ${routeKind.name}`, (t) => tests(t, routeKind))
}

/** A body that every schema of these routes accepts. */
export const ZONE = '{"name":"Lobby"}'
export const jsonHeaders = (): Record<string, string> => ({ ...browserHeaders(), 'content-type': 'application/json' })

export const BOUNDARY = 'form-boundary'
export const formHeaders = (): Record<string, string> => ({
  ...browserHeaders(),
  'content-type': `multipart/form-data; boundary=${BOUNDARY}`
})
