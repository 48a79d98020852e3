import { labelOf } from './form-fields.js'
import type { Emergency } from './types.js'

/** The title of an emergency or a drill; without one, its type. */
export const titleOf = ({ title, type }: Emergency): string => title || labelOf(type || 'emergency')
