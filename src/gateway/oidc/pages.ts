import { HOME_PATH, LOGIN_PATH } from './config.js'
import type { IdentityError } from './identity.js'
import type { HtmlPage } from './navigation.js'
import type { ProviderErrorKind } from './provider-error.js'
import { addressWithReturn } from './return-path.js'

// All pages of the sign-in and sign-out flows. The only foreign text on them is the user's email address, the path to
// return to and the labels of providers.

const RETRY_SECONDS = '10'

const loginAddress = (returnTo: string): string => addressWithReturn(LOGIN_PATH, returnTo)

/** A provider that the user can choose. */
export interface ProviderChoice {
  readonly label: string
  readonly loginAt: string
}

export const chooseProviderPage = (choices: readonly ProviderChoice[]): HtmlPage => ({
  status: 200,
  title: 'Sign in',
  text: ['Choose the organisation or service that you sign in with.'],
  choices: choices.map(({ label, loginAt }) => [label, loginAt]),
  links: []
})

const PROVIDER_ERROR_PAGES: Readonly<Record<ProviderErrorKind, Omit<HtmlPage, 'links'>>> = {
  declined: {
    status: 403,
    title: 'You were not signed in',
    text: ['Access was not granted: either you declined, or your identity provider did not allow it.']
  },
  'invalid-grant': {
    status: 400,
    title: 'This sign-in has already been used',
    text: ['A sign-in can be completed only once, within a few minutes. Nothing is wrong with your account.']
  },
  unavailable: {
    status: 503,
    title: 'Sign-in is not available right now',
    text: ['The identity provider cannot be reached. Try again in a moment. Users who are signed in stay signed in.'],
    headers: { 'retry-after': RETRY_SECONDS }
  },
  rejected: {
    status: 502,
    title: 'The identity provider rejected the sign-in',
    text: ['This is probably a configuration error. Please tell the operators of this service.']
  },
  unverified: {
    status: 400,
    title: 'The sign-in could not be verified',
    text: ["The identity provider's response failed verification, so you were not signed in."]
  }
}

export const providerErrorPage = (kind: ProviderErrorKind, returnTo: string): HtmlPage => ({
  ...PROVIDER_ERROR_PAGES[kind],
  links: [['Sign in again', loginAddress(returnTo)]]
})

/** For a callback that matches no sign-in started by this browser. */
export const strayCallbackPage = (): HtmlPage => ({
  status: 400,
  title: 'This sign-in was not started here',
  text: [
    'It was completed before, took too long, or was started in another browser. If you followed a link that somebody sent you, close this page.',
    'If this keeps happening, check whether your browser accepts cookies from this site.'
  ],
  links: [['Sign in again', loginAddress(HOME_PATH)]]
})

const IDENTITY_ERRORS: Readonly<Record<IdentityError, string>> = {
  'no-subject': 'The identity provider did not send your user ID.',
  'no-email': 'The identity provider did not send your email address, which is needed to find your account.',
  'unconfirmed-email': 'Your email address is not confirmed at the identity provider. Confirm it there first.'
}

export const identityErrorPage = (error: IdentityError, logoutPath: string): HtmlPage => ({
  status: 403,
  title: 'You cannot be signed in',
  text: [IDENTITY_ERRORS[error], 'If that does not help, ask the administrators of your identity provider.'],
  links: [
    ['Sign in with another account', logoutPath],
    ['Try again', loginAddress(HOME_PATH)]
  ]
})

export const noAccountPage = (email: string, logoutPath: string): HtmlPage => ({
  status: 403,
  title: 'You do not have an account here',
  text: [
    `You are signed in at your identity provider as ${email}, but this service has no account with that address.`,
    'Ask an administrator of this service to create one. It can take five minutes to take effect.'
  ],
  links: [
    ['Sign in with another account', logoutPath],
    ['Go to the start page', HOME_PATH]
  ]
})

export const backendUnavailablePage = (returnTo: string): HtmlPage => ({
  status: 503,
  title: 'The service is not available right now',
  text: ['You are signed in at your identity provider, but the service behind this page cannot be reached right now.'],
  links: [['Try again', returnTo]],
  headers: { 'retry-after': RETRY_SECONDS }
})

/** For a logout link on another site. */
export const confirmLogoutPage = (logoutPath: string): HtmlPage => ({
  status: 200,
  title: 'Sign out?',
  text: ['Another site sent you here. You are still signed in.'],
  links: [
    ['Sign out', logoutPath],
    ['Stay signed in', HOME_PATH]
  ]
})

export const signedOutPage = (isProviderAvailable: boolean): HtmlPage => ({
  status: 200,
  title: 'You are signed out here',
  text: [
    isProviderAvailable
      ? 'You may still be signed in at your identity provider. Sign out there too, or close the browser, if others use this device.'
      : 'The identity provider cannot be reached, so you may still be signed in there. Sign out there too, or close the browser, if others use this device.'
  ],
  links: [['Sign in', loginAddress(HOME_PATH)]]
})
