import { gatewayConfig } from '../../src/gateway/config.js'
import { type Environment, SettingsError } from '../../src/shared/env.js'

/** The errors of a gateway with this environment, by default in development; none if it could start. */
export const gatewaySettingsErrors = (environment: Environment): readonly string[] => {
  try {
    gatewayConfig({ NODE_ENV: 'development', ...environment })
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.errors
    throw error
  }
}
