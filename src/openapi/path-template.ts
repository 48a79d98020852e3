import { isObject } from '../shared/is-object.js'
import { toCanonicalPath } from '../shared/request-path.js'

/** A path template of a description, as the gateway serves it. */
export interface PathTemplate {
  /** In the syntax of OpenAPI, with encoded text: `/api/floors/{floor-id}`. */
  readonly template: string
  /** In the syntax of the router: `/api/floors/:floor_id`. */
  readonly path: string
  /** The same for all templates that match the same paths. */
  readonly shape: string
  /** The router's name of each parameter. */
  readonly names: ReadonlyMap<string, string>
}

/** The path of the first server, with the defaults of its variables and without a slash at its end. */
export const serverPrefix = (server: unknown): string => {
  if (!isObject(server) || typeof server.url !== 'string') return ''
  const variables = isObject(server.variables) ? server.variables : {}
  const url = server.url.replace(/\{([^}]*)\}/g, (_, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
    return isObject(variable) && typeof variable.default === 'string' ? variable.default : ''
  })
  const path = /^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/]*(.*)$/i.exec(url)?.[1] ?? url
  const [withoutQuery = ''] = path.split(/[?#]/)
  const trimmed = withoutQuery.replace(/\/+$/, '')
  return trimmed === '' || trimmed.startsWith('/') ? trimmed : `/${trimmed}`
}

/** Where the paths of a description are served: under `/api`, which is itself no path of an operation. */
export const API_AREA: PathArea = { prefixes: ['/api'], hasRoot: false }

/** The part of the gateway's paths that a description may have. */
export interface PathArea {
  /** Paths outside of them are served below the first one. */
  readonly prefixes: readonly [string, ...string[]]
  /** Whether the prefixes themselves may be paths of operations. */
  readonly hasRoot: boolean
}

const isWithin = (path: string, { prefixes }: PathArea): boolean =>
  prefixes.some((prefix) => prefix === '/' || path === prefix || path.startsWith(`${prefix}/`))

/** Throws an error with the reason if a path cannot be served. */
export const readTemplate = (pathOfDocument: string, area: PathArea): PathTemplate => {
  const [first] = area.prefixes
  const template = encodedTemplate(isWithin(pathOfDocument, area) ? pathOfDocument : `${first}${pathOfDocument}`)
  const literals = template.split(PARAMETER)
  if (/[{}]/.test(literals.join(''))) throw new Error('the braces of the path do not match')
  if (literals.slice(1, -1).includes('')) {
    throw new Error('two parameters follow each other without a character between them')
  }
  const names = routerNames(template)
  const example = template.replace(PARAMETER, 'x')
  const isRoot = !area.hasRoot && area.prefixes.includes(template)
  if (/[?#]/.test(example) || toCanonicalPath(example) === null || isRoot) {
    throw new Error(
      'requests with this path would be rejected: it has a query, a fragment, an empty segment or the like'
    )
  }
  return { template, path: routerPath(template, names), shape: template.replace(PARAMETER, '{}'), names }
}

const PARAMETER = /\{[^{}/]+\}/g

const encodedTemplate = (path: string): string =>
  path.replace(/[^{}]+|\{[^{}/]+\}|[{}]/g, (part) => (/[{}]/.test(part) ? part : encodedText(part)))

/** The text as requests contain it. */
const encodedText = (text: string): string => {
  try {
    return text.replace(/[^\x21-\x7e]+/g, encodeURIComponent)
  } catch {
    throw new Error('the path contains half of a character')
  }
}

const routerNames = (template: string): ReadonlyMap<string, string> => {
  const names = new Map<string, string>()
  for (const [parameter] of template.matchAll(PARAMETER)) {
    const name = parameter.slice(1, -1)
    if (names.has(name)) throw new Error(`the path has two parameters "${name}"`)
    const plain = name.replace(/\W/g, '_')
    names.set(name, [...names.values()].includes(plain) ? `${plain}_${names.size}` : plain)
  }
  return names
}

const routerPath = (template: string, names: ReadonlyMap<string, string>): string =>
  template
    .split('/')
    .map((segment) => routerSegment(segment, names))
    .join('/')

/** In a segment with text beside parameters, a parameter ends where the text begins; the last one may contain it. */
const routerSegment = (segment: string, names: ReadonlyMap<string, string>): string => {
  const parameters = [...segment.matchAll(PARAMETER)]
  const isWhole = parameters.length === 1 && parameters[0]?.[0] === segment
  let path = ''
  let end = 0
  for (const [index, { 0: parameter, index: start }] of parameters.entries()) {
    const name = names.get(parameter.slice(1, -1)) ?? ''
    path += routerText(segment.slice(end, start))
    end = start + parameter.length
    const isLast = index === parameters.length - 1
    const excluded = isLast ? '' : escapeInClass(decodeURIComponent(segment.slice(end))[0] ?? '')
    path += isWhole ? `:${name}` : `:${name}(^[^/${excluded}]+)`
  }
  return path + routerText(segment.slice(end))
}

/** The router compares decoded text, takes a colon for the start of a parameter and an asterisk for a wildcard. */
const routerText = (text: string): string => {
  if (text.includes('*')) throw new Error('the path contains "*"')
  return decodeURIComponent(text).replaceAll(':', '::')
}

const escapeInClass = (character: string): string => character.replace(/[\\\]^-]/g, '\\$&')
