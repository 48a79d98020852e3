import type { GatewayError } from '../errors.js'
import type { ApiKey, SecurityScheme } from './document.js'

/** The introduction, for people. Paragraphs, lists and `code` are all that the page knows of Markdown. */
export const about = (refusalsOfAnyRequest: readonly GatewayError[]): string =>
  `
What a browser sends here is checked and then forwarded to the same path of the backend, whose answer passes through as
it is. Every other path under \`/api/\` is forwarded without a schema.

Whoever changes something needs a session and a CSRF token. The token comes from \`/api/auth/csrf-token\` and goes back as
\`X-CSRF-Token\`. Reads pass, and the backend decides; only the audit log asks for a session here already. Sessions, CSRF
tokens and the login limit are enforced in production only.

A refusal of the gateway has the header \`X-Gateway-Error\` and the body \`ErrorBody\`; an error of the backend has neither.
A method that a path below does not have is refused with \`METHOD_NOT_ALLOWED\` (405) if it would change something, another
spelling of such a path with \`AMBIGUOUS_PATH\` (400). Any request can also meet these:

${refusalsOfAnyRequest.map(({ statusCode, code, message }) => `- ${statusCode} \`${code}\`: ${message}`).join('\n')}
`.trim()

export const BACKEND_ERROR = "The backend's own error: its status and its body, as they are."

export const securitySchemes: Readonly<Record<SecurityScheme, ApiKey>> = {
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'auth_token',
    description: 'The app token, set when somebody signs in. Scripts cannot read it.'
  },
  csrf: {
    type: 'apiKey',
    in: 'header',
    name: 'X-CSRF-Token',
    description: 'Must be equal to the cookie csrf_token, which comes from /api/auth/csrf-token.'
  }
}
