/** The style of large published REST APIs: resources with lists, pages, ids and references to each other. */
export interface GeneratedOptions {
  readonly resources: number
  readonly version: '3.0.3' | '3.1.0'
}

const DESCRIPTION =
  'It is described at some length, as the fields of published documents are, with examples and limits.'

const fieldOf = (resource: number, field: number, resources: number): object => {
  const kinds: readonly object[] = [
    { type: 'string', minLength: 1, maxLength: 200 },
    { type: 'integer', minimum: 0, maximum: 100_000 },
    { type: 'string', format: 'date-time' },
    { type: 'boolean' },
    { type: 'string', enum: Array.from({ length: 12 }, (_, index) => `state_${index}`) },
    { type: 'array', items: { type: 'string', pattern: '^[a-z0-9-]{1,63}$' }, maxItems: 50 },
    { type: 'string', format: 'email' },
    { $ref: `#/components/schemas/Resource${(resource * 7 + field) % resources}` }
  ]
  const kind = kinds[(field + resource) % kinds.length] ?? {}
  return '$ref' in kind ? kind : { ...kind, description: `Field ${field} of resource ${resource}. ${DESCRIPTION}` }
}

const FIELDS = 14

export const generatedDocument = ({ resources, version }: GeneratedOptions): object => {
  const numbers = Array.from({ length: resources }, (_, index) => index)
  const schemas = numbers.map((resource) => {
    const fields = Array.from({ length: FIELDS }, (_, field) => [`field_${field}`, fieldOf(resource, field, resources)])
    const id = { type: 'string', format: 'uuid', readOnly: true, description: DESCRIPTION }
    const properties = { id, ...Object.fromEntries(fields) }
    return [`Resource${resource}`, { type: 'object', required: ['id'], properties, additionalProperties: false }]
  })
  const paths = numbers.flatMap((resource) => {
    const content = { 'application/json': { schema: { $ref: `#/components/schemas/Resource${resource}` } } }
    const responses = { 200: { description: DESCRIPTION, content } }
    const requestBody = { required: true, content }
    const parameters = [
      { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100 } },
      { name: 'sort', in: 'query', explode: false, schema: { type: 'array', items: { type: 'string' } } }
    ]
    const id = { name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } }
    return [
      [`/resources${resource}`, { get: { parameters, responses }, post: { requestBody, responses } }],
      [
        `/resources${resource}/{id}`,
        { parameters: [id], get: { responses }, put: { requestBody, responses }, delete: { responses } }
      ]
    ]
  })
  return {
    openapi: version,
    info: { title: 'Generated', version: '1' },
    servers: [{ url: 'https://api.example.com/v1' }],
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(schemas) }
  }
}
