import packageFile from '../../package.json' with { type: 'json' }
import { type Environment, SettingsError } from './env.js'
import { errorCode } from './error-code.js'
import type { TracedProgram, Tracer } from './tracing.js'

// The OpenTelemetry packages are loaded only if tracing is enabled.

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT'
const TRACES_ENDPOINT = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
const PROTOCOL = 'OTEL_EXPORTER_OTLP_PROTOCOL'
const TRACES_PROTOCOL = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
const SUPPORTED_PROTOCOL = 'http/protobuf'

/**
 * The tracer, or null if tracing is disabled. The SDK reads all other `OTEL_…` variables itself. Throws `SettingsError` if a
 * setting is invalid or the packages are not installed.
 */
export const openTracer = async (environment: Environment, program: TracedProgram): Promise<Tracer | null> => {
  if (!isEnabled(environment)) return null
  checkSettings(environment)
  try {
    const { OpenTelemetryTracer } = await import('./open-telemetry.js')
    return new OpenTelemetryTracer(program)
  } catch (error) {
    if (errorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new SettingsError([`${ENDPOINT} needs the OpenTelemetry packages: ${INSTALL_OPEN_TELEMETRY}`])
  }
}

/** In the npm package these are optional peer dependencies. */
export const INSTALL_OPEN_TELEMETRY = `npm install ${Object.entries(packageFile.optionalDependencies)
  .map(([name, version]) => `${name}@${version}`)
  .join(' ')}`

const isEnabled = (environment: Environment): boolean => {
  const hasEndpoint = [ENDPOINT, TRACES_ENDPOINT].some((name) => (environment[name] ?? '') !== '')
  const isDisabled = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true'
  return hasEndpoint && !isDisabled && environment.OTEL_TRACES_EXPORTER !== 'none'
}

const checkSettings = (environment: Environment): void => {
  const errors: string[] = []
  for (const name of [ENDPOINT, TRACES_ENDPOINT]) {
    const value = environment[name] ?? ''
    if (value !== '' && !isHttpUrl(value)) errors.push(`${name} must be an http or https URL`)
  }
  for (const name of [PROTOCOL, TRACES_PROTOCOL]) {
    const value = environment[name] ?? ''
    if (value !== '' && value !== SUPPORTED_PROTOCOL) errors.push(`${name} must be ${SUPPORTED_PROTOCOL}`)
  }
  if (errors.length > 0) throw new SettingsError(errors)
}

const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
