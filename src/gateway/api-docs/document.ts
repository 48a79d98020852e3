// Types for the part of OpenAPI 3.1 that is used here.

export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, PathItem>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly responses: Readonly<Record<string, Response>>
    readonly examples: Readonly<Record<string, Example>>
    readonly securitySchemes: Readonly<Record<SecurityScheme, ApiKey>>
  }
}

export const HTTP_METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

export type PathItem = Partial<Record<(typeof HTTP_METHODS)[number], Operation>>

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: RequestBody
  readonly responses: Readonly<Record<string, Response | Reference>>
  /** Alternatives: one of them must be met. An empty one requires nothing. */
  readonly security: readonly SecurityRequirement[]
}

export type SecurityScheme = 'session' | 'csrf'
export type SecurityRequirement = Partial<Record<SecurityScheme, readonly never[]>>

export interface ApiKey {
  readonly type: 'apiKey'
  readonly in: 'cookie' | 'header'
  readonly name: string
  readonly description: string
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description: string
  readonly style?: 'form'
  readonly explode?: boolean
  readonly schema: JsonSchema
}

export interface RequestBody {
  readonly required: boolean
  readonly description?: string
  readonly content: Readonly<Record<string, MediaType>>
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header>>
  readonly content?: Readonly<Record<string, MediaType>>
}

export interface Header {
  readonly description: string
  readonly schema: JsonSchema
}

export interface MediaType {
  readonly schema?: JsonSchema
  readonly examples?: Readonly<Record<string, Reference>>
}

export interface Example {
  readonly summary: string
  readonly value: unknown
}

export interface Reference {
  readonly $ref: string
}

/** The part of JSON Schema that our schemas use. */
export interface JsonSchema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: string
  readonly const?: unknown
  readonly anyOf?: readonly JsonSchema[]
  readonly not?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly minProperties?: number
  readonly items?: JsonSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly contentMediaType?: string
  readonly examples?: readonly unknown[]
  readonly [keyword: string]: unknown
}
