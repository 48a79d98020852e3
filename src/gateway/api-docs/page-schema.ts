import { anchor, type Fields, fieldsOf, type Html, html, listOf, NOTHING, proseOf, stringOf } from './page-text.js'

/** Deeper parts of a schema without a name are not shown. */
const MAX_DEPTH = 12

const jsonText = (value: unknown): string => JSON.stringify(value) ?? ''

/** A link to the schema that a reference names. */
const link = (reference: string): Html => {
  const name = reference.replace(/^.*\//, '')
  return html`<a href="#${anchor('schema', name)}">${name}</a>`
}

/** Keywords that limit a value, with their text before it. */
const LIMITS: readonly (readonly [keyword: string, before: string])[] = [
  ['minimum', '≥ '],
  ['exclusiveMinimum', '> '],
  ['maximum', '≤ '],
  ['exclusiveMaximum', '< '],
  ['multipleOf', 'multiple of '],
  ['minLength', 'length ≥ '],
  ['maxLength', 'length ≤ '],
  ['minItems', 'items ≥ '],
  ['maxItems', 'items ≤ '],
  ['pattern', 'matches '],
  ['default', 'default ']
]

const limitsOf = (schema: Fields): string =>
  LIMITS.filter(([keyword]) => schema[keyword] !== undefined)
    .map(([keyword, before]) => {
      const value = schema[keyword]
      return `, ${before}${typeof value === 'string' && keyword === 'pattern' ? value : jsonText(value)}`
    })
    .join('')

/** The type of a value in one line, such as `array of Zone, items ≤ 100`. */
export const typeOf = (value: unknown, depth = 0): Html => {
  const schema = fieldsOf(value)
  if (typeof schema.$ref === 'string') return link(schema.$ref)
  if (schema.const !== undefined) return html`<code>${jsonText(schema.const)}</code>`
  if (Array.isArray(schema.enum)) return html`one of <code>${schema.enum.map(jsonText).join(', ')}</code>`
  for (const [keyword, between] of [
    ['oneOf', ' or '],
    ['anyOf', ' or '],
    ['allOf', ' and ']
  ] as const) {
    const all = listOf(schema[keyword])
    if (all.length === 0 || depth > MAX_DEPTH) continue
    return html`${all.map((each, index) => html`${index === 0 ? '' : between}${typeOf(each, depth + 1)}`)}`
  }
  const type = [schema.type].flat().filter((name) => typeof name === 'string')
  const format = stringOf(schema.format) === '' ? '' : ` (${schema.format})`
  if (type.includes('array') && depth < MAX_DEPTH)
    return html`array of ${typeOf(schema.items, depth + 1)}${limitsOf(schema)}`
  return html`${type.join(' or ') || 'any value'}${format}${limitsOf(schema)}`
}

/** The innermost schema whose members are listed: that of an object, or of the items of an array. */
const withMembers = (value: unknown, depth = 0): Fields => {
  const schema = fieldsOf(value)
  return schema.items === undefined || depth > MAX_DEPTH ? schema : withMembers(schema.items, depth + 1)
}

/** The properties of an object, with those of the objects in it. Schemas with a name are links. */
export const propertiesOf = (value: unknown, depth = 0): Html => {
  const schema = withMembers(value)
  const required = listOf(schema.required)
  const parts = ['oneOf', 'anyOf', 'allOf'].flatMap((keyword) => listOf(schema[keyword]))
  const nested = depth > MAX_DEPTH ? [] : parts.map((part) => propertiesOf(part, depth + 1))
  const fields = Object.entries(fieldsOf(schema.properties)).map(([name, property]) =>
    field({
      name,
      type: typeOf(property),
      isRequired: required.includes(name),
      description: fieldsOf(property).description,
      inside: depth > MAX_DEPTH ? NOTHING : propertiesOf(property, depth + 1)
    })
  )
  const own = fields.length === 0 ? NOTHING : html`<ul class="fields">${fields}</ul>`
  return html`${own}${nested}`
}

export interface Field {
  readonly name: string
  readonly type: Html
  readonly isRequired: boolean
  readonly description: unknown
  readonly inside?: Html
}

export const field = ({ name, type, isRequired, description, inside = NOTHING }: Field): Html =>
  html`<li><code class="name">${name}</code> <span class="muted">${type}${isRequired ? ', required' : ''}</span>${proseOf(description)}${inside}</li>`

/** The example of a schema, a body or a parameter; nothing if there is none. */
export const exampleOf = (value: unknown): Html => {
  const { example, examples } = fieldsOf(value)
  const [first] = Array.isArray(examples)
    ? examples
    : Object.values(fieldsOf(examples)).map((each) => fieldsOf(each).value)
  const shown = example ?? first
  return shown === undefined ? NOTHING : html`<h4>Example</h4><pre>${JSON.stringify(shown, null, 2)}</pre>`
}
