import { isObject } from '../shared/is-object.js'

/** Keywords whose value is one schema. */
export const SCHEMA_KEYWORDS = new Set([
  'additionalProperties',
  'items',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentSchema'
])

/** Keywords whose value is a list of schemas. */
export const LIST_KEYWORDS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])

/** Keywords whose value is an object of schemas. */
export const MAP_KEYWORDS = new Set(['properties', 'patternProperties', 'dependentSchemas'])

const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0
const isNumber = (value: unknown): boolean => Number.isFinite(value)
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((each) => typeof each === 'string')

const TYPES: readonly unknown[] = ['null', 'boolean', 'object', 'array', 'number', 'string', 'integer']
const areTypes = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 && value.every((each) => TYPES.includes(each)) : TYPES.includes(value)

type Rule = readonly [isValid: (value: unknown) => boolean, rule: string]

const COUNT: Rule = [isCount, 'must be a whole number that is not negative']
const NUMBER: Rule = [isNumber, 'must be a number']
const NUMBER_OR_FLAG: Rule = [(value) => isNumber(value) || typeof value === 'boolean', 'must be true or false']
const TEXTS: Rule = [isTexts, 'must be a list of texts']

/**
 * The other keywords that decide what is valid. All keywords that are in none of these lists are ignored, as annotations
 * are. `default` is one of them: the gateway inserts nothing into a body.
 */
export const VALUE_KEYWORDS: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['type', [areTypes, `type must be one of ${TYPES.join(', ')}, or a list of them`]],
  ['enum', [Array.isArray, 'must be a list']],
  ['const', [() => true, '']],
  ['required', TEXTS],
  ['pattern', [(value) => typeof value === 'string', 'must be text']],
  ['format', [(value) => typeof value === 'string', 'must be text']],
  ['uniqueItems', [(value) => typeof value === 'boolean', 'must be true or false']],
  ['minLength', COUNT],
  ['maxLength', COUNT],
  ['minItems', COUNT],
  ['maxItems', COUNT],
  ['minProperties', COUNT],
  ['maxProperties', COUNT],
  ['minContains', COUNT],
  ['maxContains', COUNT],
  ['minimum', NUMBER],
  ['maximum', NUMBER],
  ['multipleOf', [(value) => isNumber(value) && Number(value) > 0, 'must be a number above 0']],
  ['exclusiveMinimum', NUMBER],
  ['exclusiveMaximum', NUMBER],
  ['dependentRequired', [(value) => isObject(value) && Object.values(value).every(isTexts), 'must be lists of texts']]
])

/** The same for OpenAPI 3.0, which has the booleans of JSON Schema draft 4. Many documents have the later numbers, too. */
export const VALUE_KEYWORDS_30: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...VALUE_KEYWORDS,
  ['exclusiveMinimum', NUMBER_OR_FLAG],
  ['exclusiveMaximum', NUMBER_OR_FLAG]
])
