/** A declaration that has no effect. */
export interface RouteWarning {
  readonly location: string
  readonly message: string
}

export const OWN_PATH_WARNING = 'operation ignored, the gateway serves this path itself'
