import type {
  Example,
  JsonSchema,
  Operation,
  Parameter,
  RequestBody,
  Response,
  SecurityRequirement
} from './document.js'
import { type Field, fieldsOf, typeOf } from './fields.js'
import { type Html, html, inline } from './html.js'
import type { Follow, PlacedOperation } from './reading.js'

/** An operation, folded up until somebody wants to know more. */
export const operationView = ({ method, path, operation }: PlacedOperation, follow: Follow): Html => {
  const { operationId, summary, description, parameters = [], requestBody, responses, security } = operation
  return html`<details id="${operationId}" data-find="${[method, path, summary, operationId].join(' ').toLowerCase()}">
<summary><b class="${method}">${method.toUpperCase()}</b> <code>${path}</code> <span>${summary}</span>${badge(security)}</summary>
<div>
<p class="id">${operationId}</p>
${description === undefined ? null : html`<p>${inline(description)}</p>`}
<p>${needs(security)}</p>
${parametersView(parameters, follow)}
${requestBody === undefined ? null : bodyView(requestBody, follow)}
${answersView(inOrder(responses, follow), follow)}
</div>
</details>
`
}

const SCHEME_NAMES: Readonly<Record<string, string>> = { session: 'session', csrf: 'CSRF' }

/** What it takes, at a glance; where there is a choice, it takes nothing. */
const badge = (security: readonly SecurityRequirement[]): Html | null => {
  const [only, another] = security
  if (only === undefined || another !== undefined) return null
  return html`<i>${Object.keys(only)
    .map((name) => SCHEME_NAMES[name] ?? name)
    .join(' + ')}</i>`
}

const needs = (security: readonly SecurityRequirement[]): string => {
  const [first, second] = security
  if (first === undefined) return 'Needs neither a session nor a CSRF token.'
  if (second !== undefined) return 'Passes without a session; whether one is needed, the backend decides.'
  if (first.session && first.csrf) return 'Needs a session and a CSRF token.'
  return first.session ? 'Needs a session.' : 'Needs a CSRF token.'
}

const parametersView = (parameters: readonly Parameter[], follow: Follow): Html | null => {
  if (parameters.length === 0) return null
  const inPath = parameters.filter((parameter) => parameter.in === 'path').map((parameter) => rowOf(parameter, follow))
  const inQuery = parameters.filter((parameter) => parameter.in === 'query')
  return html`${inPath.length === 0 ? null : html`<h3>Path</h3>${fieldTable(inPath)}`}
${inQuery.map(
  ({ description, schema }) => html`<h3>Query</h3><p>${description}</p>${fieldTable(fieldsOf(schema, follow))}`
)}`
}

const rowOf = ({ name, required, description, schema }: Parameter, follow: Follow): Field => ({
  name,
  ...typeOf(schema, follow),
  required,
  description
})

const bodyView = ({ required, description, content }: RequestBody, follow: Follow): Html =>
  html`${Object.entries(content).map(
    ([type, { schema = {} }]) => html`<h3>Body <small>${type}${required ? '' : ', may be left out'}</small></h3>
<p>${description ?? follow<JsonSchema>(schema).description ?? ''}</p>
${fieldTable(fieldsOf(schema, follow))}
<p>${remarks(follow<JsonSchema>(schema))}</p>
${exampleOf(follow<JsonSchema>(schema))}`
  )}`

const remarks = ({ additionalProperties, minProperties }: JsonSchema): string =>
  [
    minProperties === undefined ? [] : 'At least one field has to be there.',
    additionalProperties === false ? 'There are no other fields.' : 'Other fields go to the backend as they are.'
  ]
    .flat()
    .join(' ')

const exampleOf = ({ examples = [] }: JsonSchema): Html | null =>
  examples.length === 0 ? null : html`<h4>Example</h4><pre tabindex="0">${JSON.stringify(examples[0], null, 2)}</pre>`

const fieldTable = (fields: readonly Field[]): Html | null =>
  fields.length === 0
    ? null
    : html`<div class="scroll"><table>
<thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead>
<tbody>${fields.map(
        ({ name, type, limits, required, description }) => html`<tr>
<td><code>${name}</code>${required ? html` <em>required</em>` : null}</td><td>${type}${limits === '' ? null : html` <small>${limits}</small>`}</td><td>${description}</td></tr>`
      )}</tbody>
</table></div>`

type Answers = readonly (readonly [status: string, response: Response])[]

/** Good news first, and last what is left to the backend. */
const inOrder = (responses: Operation['responses'], follow: Follow): Answers =>
  Object.entries(responses)
    .map(([status, response]) => [status, follow<Response>(response)] as const)
    .toSorted(([one], [other]) => rank(one) - rank(other))

const rank = (status: string): number => (status === 'default' ? 999 : Number(status.replaceAll('X', '0')))

const answersView = (answers: Answers, follow: Follow): Html => html`<h3>Answers</h3>
<div class="scroll"><table>
<thead><tr><th>Status</th><th>Code</th><th>Meaning</th></tr></thead>
<tbody>${answers.flatMap(([status, response]) => answerRows(status, response, follow))}</tbody>
</table></div>
${answers.map(([status, response]) => answerFields(status, response, follow))}`

/** One row per code that it may carry; an answer that is not a refusal has none. */
const answerRows = (status: string, { description, content = {} }: Response, follow: Follow): readonly Html[] => {
  const label = status === 'default' ? 'other' : status
  const codes = Object.values(content).flatMap(({ examples = {} }) => Object.entries(examples))
  if (codes.length === 0) return [html`<tr><td>${label}</td><td></td><td>${inline(description)}</td></tr>`]
  return codes.map(
    ([code, example]) =>
      html`<tr><td>${label}</td><td><code>${code}</code></td><td>${follow<Example>(example).summary}</td></tr>`
  )
}

/** Refusals all look the same; what other answers hold is said where it is known. */
const answerFields = (status: string, { content = {} }: Response, follow: Follow): readonly Html[] =>
  Object.values(content)
    .filter(({ schema, examples }) => schema !== undefined && examples === undefined)
    .map(({ schema = {} }) => html`<h4>Body of ${status}</h4>${fieldTable(fieldsOf(schema, follow))}`)
