import { EngineError } from '../core/engine.js'

/** Null while the engine is unavailable: the page then shows everything else. */
export const ifAvailable = async <Value>(reading: Promise<Value>): Promise<Value | null> => {
  try {
    return await reading
  } catch (error) {
    if (error instanceof EngineError) return null
    throw error
  }
}
