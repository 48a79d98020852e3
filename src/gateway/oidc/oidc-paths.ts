export const LOGIN_PATH = '/auth/oidc/login'
export const CALLBACK_PATH = '/auth/oidc/callback'
export const LOGOUT_PATH = '/auth/oidc/logout'
export const BACK_CHANNEL_PATH = '/auth/oidc/backchannel-logout'

export const OIDC_PATHS: readonly string[] = [LOGIN_PATH, CALLBACK_PATH, LOGOUT_PATH, BACK_CHANNEL_PATH]
