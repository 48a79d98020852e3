import type { ApiCaller } from '../../api/caller.js'
import { buildCalls } from './calls.js'
import { type Api, operations } from './operations.js'

/** Every route of the built-in API as a function. */
export const createBuildingApi = (call: ApiCaller): Api => operations(buildCalls(call))
