import type { Parameter } from './operations.js'
import type { FieldError } from './validators.js'

/** Parameters as the router and the query parser give them: decoded texts, and a list for a repeated name. */
export type ParameterValues = Readonly<Record<string, string | readonly string[] | undefined>>

/** The errors of the declared path and query parameters; `path` is the name of the parameter. Undeclared ones are allowed. */
export const parameterErrors = (
  parameters: readonly Parameter[],
  pathValues: ParameterValues,
  queryValues: ParameterValues
): FieldError[] => parameters.flatMap((parameter) => errorsOf(parameter, pathValues, queryValues))

const errorsOf = (parameter: Parameter, pathValues: ParameterValues, queryValues: ParameterValues): FieldError[] => {
  const { name, routerName, isRequired, allowsEmpty } = parameter
  const given = routerName === null ? queryValues[name] : pathValues[routerName]
  if (given === undefined) return isRequired ? [{ path: name, message: 'is required' }] : []
  if (given === '' && allowsEmpty) return []
  const value = parameterValue(parameter, given)
  if (value instanceof ParameterError) return [{ path: name, message: value.message }]
  const [error] = parameter.validate(value)
  return error === undefined ? [] : [{ path: name, message: error.message }]
}

class ParameterError extends Error {}

/** The value before its validation, which converts texts to numbers and booleans. */
const parameterValue = ({ isList, isJson, delimiter }: Parameter, given: string | readonly string[]): unknown => {
  if (isList) {
    const values = typeof given === 'string' ? [given] : given
    // A copy, because the validation converts its entries in place.
    return delimiter === null ? [...values] : values.flatMap((value) => value.split(delimiter))
  }
  if (typeof given !== 'string') return new ParameterError('must not be repeated')
  return isJson ? parsedJson(given) : given
}

const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return new ParameterError('must be JSON')
  }
}
