// An onboarding token stands in the path itself: who has a log must not have the token, however the path is spelt.
const PHONE_BEACON = /(phone-beacon\b)(?!\/(?:onboarding-token|complete-enrollment|irk-records)$).+$/i

/** A path as it may be written down. */
export const withoutPathSecret = (path: string): string => path.replace(PHONE_BEACON, '$1/…')
