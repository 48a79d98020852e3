import type { FastifyReply } from 'fastify'
import { Html, html } from '../api-docs/html.js'
import type { ProviderFault } from './client.js'
import type { IdentityFault } from './identity.js'
import { HOME } from './routes.js'

/** A page that says what happened and what can be done about it. It needs no script, and asks nobody for anything. */
export interface Page {
  readonly status: number
  readonly title: string
  readonly text: readonly string[]
  /** Where to go from here: words and address. */
  readonly links: readonly (readonly [words: string, address: string])[]
  readonly headers?: Readonly<Record<string, string>>
}

export const OIDC_PAGE_STYLE = `
:root { color-scheme: light dark; font: 1.0625rem/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 15vh auto 0; padding: 0 1.25rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
a { display: inline-block; margin-right: 1.25rem; padding: .5rem 0 }
small { opacity: .7 }
`

export const sendPage = (reply: FastifyReply, { status, title, text, links, headers = {} }: Page): FastifyReply =>
  reply
    .code(status)
    .headers(headers)
    .header('cache-control', 'no-store')
    .header('content-type', 'text/html; charset=utf-8')
    .send(
      html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(OIDC_PAGE_STYLE)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${text.map((line) => html`<p>${line}</p>\n`)}<p>${links.map(([words, address]) => html`<a href="${address}">${words}</a> `)}</p>
<p><small>If you ask for help, mention ${reply.request.id}.</small></p>
</main>
</body>
</html>
`.text
    )

// All that a person may be told on the way in or out. Nothing that anybody else wrote is on these pages but the address
// that somebody signed in with, and the place they wanted to go to.

const RETRY_SECONDS = '10'

export const loginAddress = (returnTo: string): string =>
  returnTo === HOME ? '/auth/oidc/login' : `/auth/oidc/login?returnTo=${encodeURIComponent(returnTo)}`

const LOGOUT_ADDRESS = '/auth/oidc/logout'

const tryAgain = (returnTo: string) => ['Sign in again', loginAddress(returnTo)] as const

type FaultPage = Omit<Page, 'links'>

const FAULT_PAGES: Readonly<Record<ProviderFault, FaultPage>> = {
  denied: {
    status: 403,
    title: 'You were not signed in',
    text: ['Access was not granted: either you declined, or your identity provider did not allow it.']
  },
  used: {
    status: 400,
    title: 'This sign-in has been used already',
    text: ['A sign-in can be completed once, and soon after it was begun. Nothing is wrong with your account.']
  },
  away: {
    status: 503,
    title: 'Signing in is not possible right now',
    text: ['The identity provider cannot be reached. Try again in a moment; who is signed in stays so.'],
    headers: { 'retry-after': RETRY_SECONDS }
  },
  refused: {
    status: 502,
    title: 'The identity provider refused the sign-in',
    text: ['This is probably a fault in how the two are set up. Tell the people who run this service.']
  },
  unverified: {
    status: 400,
    title: 'The sign-in could not be verified',
    text: ['What came back from the identity provider is not an answer that can be trusted, so you were not signed in.']
  }
}

export const faultPage = (fault: ProviderFault, returnTo: string): Page => ({
  ...FAULT_PAGES[fault],
  links: [tryAgain(returnTo)]
})

/** What was brought back belongs to no sign-in that this browser has begun. */
export const strayPage = (): Page => ({
  status: 400,
  title: 'This sign-in was not begun here',
  text: [
    'It was completed before, took too long, or was begun in another browser. If you got here through a link that somebody sent you, close this page.',
    'If it keeps happening, check whether your browser accepts cookies from this site.'
  ],
  links: [tryAgain(HOME)]
})

const IDENTITY_TEXTS: Readonly<Record<IdentityFault, string>> = {
  'no-subject': 'The identity provider did not say who you are.',
  'no-email': 'The identity provider did not tell us your email address, and accounts here go by that.',
  'unconfirmed-email': 'Your email address is not confirmed at the identity provider. Confirm it there first.'
}

export const identityPage = (fault: IdentityFault): Page => ({
  status: 403,
  title: 'You cannot be signed in',
  text: [IDENTITY_TEXTS[fault], 'If that does not help, ask the people who run your identity provider.'],
  links: [
    ['Sign in with another account', LOGOUT_ADDRESS],
    ['Try again', loginAddress(HOME)]
  ]
})

export const noAccountPage = (email: string): Page => ({
  status: 403,
  title: 'There is no account for you here',
  text: [
    `You are signed in at your identity provider as ${email}, but nobody has set up an account with that address here.`,
    'Ask an administrator of this service to set one up. It can take five minutes until it is noticed.'
  ],
  links: [
    ['Sign in with another account', LOGOUT_ADDRESS],
    ['Go to the start page', HOME]
  ]
})

export const backendAwayPage = (returnTo: string): Page => ({
  status: 503,
  title: 'Almost there',
  text: ['You are signed in at your identity provider, but the service behind this page cannot be reached right now.'],
  links: [['Try again', returnTo]],
  headers: { 'retry-after': RETRY_SECONDS }
})

/** Somebody followed a link from another site. */
export const confirmLogoutPage = (): Page => ({
  status: 200,
  title: 'Sign out?',
  text: ['Another site sent you here. You are still signed in.'],
  links: [
    ['Sign out', LOGOUT_ADDRESS],
    ['Stay signed in', HOME]
  ]
})

export const signedOutPage = (providerAway: boolean): Page => ({
  status: 200,
  title: 'You are signed out here',
  text: [
    providerAway
      ? 'The identity provider cannot be reached, so you may still be signed in there. Sign out there too, or close the browser, if others use this machine.'
      : 'You may still be signed in at your identity provider. Sign out there too, or close the browser, if others use this machine.'
  ],
  links: [['Sign in', loginAddress(HOME)]]
})
