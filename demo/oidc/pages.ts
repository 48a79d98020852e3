import type { LocalAccount } from './local-provider.js'

/** Account names and addresses are constants, so they are not escaped. */
const page = (content: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Demo identity provider</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; font: 1.0625rem/1.5 system-ui, sans-serif }
body { max-width: 26rem; margin: 12vh auto 0; padding: 0 1.25rem }
button { display: block; width: 100%; margin: .5rem 0; padding: .75rem 1rem; font: inherit; text-align: left; cursor: pointer }
</style>
</head>
<body>
<main>
<h1>Demo identity provider</h1>
${content}
</main>
</body>
</html>
`

/** The account selection. */
export const choosePage = (accounts: readonly LocalAccount[]): string =>
  page(`<p>Pick an account. There are no passwords here.</p>
<form method="post">
${accounts.map(({ id, claims }) => `<button name="account" value="${id}">${claims.name} · ${claims.email ?? 'no email'}</button>`).join('\n')}
<button name="account" value="">Decline</button>
</form>`)

/** The logout confirmation; `form` is created by the library and has CSRF protection. */
export const signOutPage = (form: string): string =>
  page(`<p>Do you want to sign out here too?</p>
${form}
<button type="submit" form="op.logoutForm" name="logout" value="yes" autofocus>Yes, sign out</button>
<button type="submit" form="op.logoutForm">No, stay signed in</button>`)

export const signedOutPage = (): string => page('<p>You are signed out.</p>')

export const errorPage = (error: string): string => page(`<p>Sign-in failed: ${error.replace(/[^\w ,.:-]/g, '')}.</p>`)
