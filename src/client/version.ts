/** The version of the package, which the operators' page of the relay shows. A test compares it with package.json. */
export const VERSION = '0.2.0'
