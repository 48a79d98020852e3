import { exampleOf, field, propertiesOf, typeOf } from './page-schema.js'
import { anchor, type Fields, fieldsOf, type Html, html, listOf, NOTHING, proseOf, stringOf } from './page-text.js'

// The page at /api/docs: the OpenAPI document as plain HTML. It needs no script, so that a strict Content-Security-Policy applies.

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%230b6b6b'/%3E%3Cpath d='M8 24V13a8 8 0 0 1 16 0v11' fill='none' stroke='%23fff' stroke-width='2.6' stroke-linecap='round'/%3E%3Ccircle cx='16' cy='18' r='3.2' fill='%23fff'/%3E%3C/svg%3E"

interface Operation {
  readonly method: string
  readonly path: string
  readonly servers: unknown
  readonly fields: Fields
}

export interface PageAddresses {
  readonly document: string
  readonly style: string
}

export const apiPage = (document: unknown, addresses: PageAddresses): string => {
  const { info, tags, paths, components } = fieldsOf(document)
  const { title, version, description } = fieldsOf(info)
  const operations = operationsOf(paths)
  const sections = sectionsOf(listOf(tags), operations)
  const { schemas, securitySchemes, ...others } = fieldsOf(components)
  const resolve = (value: unknown): Fields => resolved(value, others)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${stringOf(title)} API</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${addresses.style}">
</head>
<body>
<header><img src="${ICON}" alt="" width="28" height="28"><h1>${stringOf(title)} API</h1><span class="muted">${stringOf(version)}</span><a href="${addresses.document}">OpenAPI document</a></header>
<nav aria-label="Sections"><ul>${sections.map(({ name }) => html`<li><a href="#${anchor('tag', name)}">${name}</a></li>`)}<li><a href="#security">Security</a></li><li><a href="#schemas">Schemas</a></li></ul></nav>
<main>
<section aria-label="Introduction">${proseOf(description)}</section>
${sections.map((section) => sectionHtml(section, resolve))}
<section aria-labelledby="security"><h2 id="security">Security</h2><ul class="fields">${Object.entries(fieldsOf(securitySchemes)).map(securityScheme)}</ul></section>
<section aria-labelledby="schemas"><h2 id="schemas">Schemas</h2>${Object.entries(fieldsOf(schemas)).map(schemaHtml)}</section>
</main>
</body>
</html>`.text
}

const operationsOf = (paths: unknown): readonly Operation[] =>
  Object.entries(fieldsOf(paths)).flatMap(([path, item]) => {
    const { servers, ...byMethod } = fieldsOf(item)
    return METHODS.filter((method) => byMethod[method] !== undefined).map((method) => ({
      method,
      path,
      servers,
      fields: fieldsOf(byMethod[method])
    }))
  })

interface Section {
  readonly name: string
  readonly about: unknown
  readonly operations: readonly Operation[]
}

const OTHER = 'Other'

/** One section for each tag. An operation is in the section of its first tag. */
const sectionsOf = (tags: readonly unknown[], operations: readonly Operation[]): readonly Section[] => {
  const byTag = new Map<string, Operation[]>()
  const about = new Map(tags.map((tag) => [stringOf(fieldsOf(tag).name), fieldsOf(tag).description]))
  for (const name of about.keys()) byTag.set(name, [])
  for (const operation of operations) {
    const name = stringOf(listOf(operation.fields.tags)[0]) || OTHER
    byTag.set(name, [...(byTag.get(name) ?? []), operation])
  }
  return [...byTag]
    .filter(([, all]) => all.length > 0)
    .map(([name, all]) => ({ name, about: about.get(name), operations: all }))
}

type Resolve = (value: unknown) => Fields

/** Follows a reference to a parameter, body, response or header. Those to schemas are shown as links. */
const resolved = (value: unknown, components: Fields): Fields => {
  const [, section = '', name = ''] = /^#\/components\/([^/]+)\/([^/]+)$/.exec(stringOf(fieldsOf(value).$ref)) ?? []
  return section === '' ? fieldsOf(value) : fieldsOf(fieldsOf(components[section])[name])
}

const sectionHtml = ({ name, about, operations }: Section, resolve: Resolve): Html => {
  const id = anchor('tag', name)
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${name}</h2>${proseOf(about)}${operations.map((operation) => operationHtml(operation, resolve))}</section>
`
}

const operationHtml = ({ method, path, servers, fields }: Operation, resolve: Resolve): Html => {
  const { summary, description, deprecated, parameters, requestBody, responses, security, operationId } = fields
  const id = anchor('operation', stringOf(operationId) || `${method}-${path}`)
  const hosts = listOf(servers).map((server) => stringOf(fieldsOf(server).url).replace(/^\/\//, ''))
  return html`<details><summary><h3><span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code></h3> <span class="muted">${stringOf(summary)}${deprecated === true ? ' (deprecated)' : ''}</span></summary>
<div id="${id}">${proseOf(description)}${hosts.length === 0 ? NOTHING : html`<p>Only at ${hosts.join(', ')}.</p>`}<p class="muted">${securityText(security)}</p>
${parametersHtml(listOf(parameters).map(resolve))}${bodyHtml(resolve(requestBody))}${responsesHtml(fieldsOf(responses), resolve)}</div></details>
`
}

/** `Requires session and csrf.` Alternatives are separated by `or`. */
const securityText = (security: unknown): string => {
  const alternatives = listOf(security).map((each) => Object.keys(fieldsOf(each)).join(' and '))
  const required = alternatives.filter((names) => names !== '').join(', or ')
  if (required === '') return 'Requires no session.'
  return alternatives.includes('') ? `Accepts ${required}; the backend decides.` : `Requires ${required}.`
}

const parametersHtml = (parameters: readonly Fields[]): Html => {
  if (parameters.length === 0) return NOTHING
  const fields = parameters.map(({ name, in: where, required, description, schema }) =>
    field({
      name: stringOf(name),
      type: html`${typeOf(schema)}, in the ${stringOf(where)}`,
      isRequired: required === true,
      description
    })
  )
  return html`<h4>Parameters</h4><ul class="fields">${fields}</ul>`
}

/** The contents of a body by their type. */
const contentHtml = (content: unknown): Html =>
  html`${Object.entries(fieldsOf(content)).map(([type, media]) => {
    const { schema } = fieldsOf(media)
    const example = exampleOf(media)
    return html`<p><code>${type}</code>: ${typeOf(schema)}</p>${propertiesOf(schema)}${example === NOTHING ? exampleOf(schema) : example}`
  })}`

const bodyHtml = ({ content, required, description }: Fields): Html =>
  content === undefined
    ? NOTHING
    : html`<h4>Request body${required === true ? '' : ' (optional)'}</h4>${proseOf(description)}${contentHtml(content)}`

const responsesHtml = (responses: Fields, resolve: Resolve): Html => {
  const all = Object.entries(responses).map(([status, value]) => {
    const { description, headers, content } = resolve(value)
    const names = Object.keys(fieldsOf(headers))
    const sent = names.length === 0 ? NOTHING : html`<p class="muted">Headers: ${names.join(', ')}</p>`
    return html`<li><code class="name">${status}</code>${proseOf(description)}${sent}${contentHtml(content)}</li>`
  })
  return all.length === 0 ? NOTHING : html`<h4>Responses</h4><ul class="fields">${all}</ul>`
}

const securityScheme = ([name, value]: [string, unknown]): Html => {
  const { type, in: where, name: key, scheme, description } = fieldsOf(value)
  const kind = key === undefined ? `${stringOf(type)} ${stringOf(scheme)}` : `${stringOf(where)} ${stringOf(key)}`
  return field({ name, type: html`${kind.trim()}`, isRequired: false, description })
}

const schemaHtml = ([name, schema]: [string, unknown]): Html => {
  const { description } = fieldsOf(schema)
  return html`<details><summary><h3><code>${name}</code></h3></summary>
<div id="${anchor('schema', name)}">${proseOf(description)}<p>${typeOf(schema)}</p>${propertiesOf(schema)}${exampleOf(schema)}</div></details>
`
}
