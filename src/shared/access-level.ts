/** `public`: no token. `user`: a verified token. `admin`: the token of an admin. On every method. */
export const ACCESS_LEVELS = ['public', 'user', 'admin'] as const
/** The access level of a route, which takes precedence over that of its path. */
export type AccessLevel = (typeof ACCESS_LEVELS)[number]
