import type { LocalAccount } from './local-provider.js'

/** Where somebody picks whom to sign in as. The names are ours, so nothing in them needs escaping. */
export const choosePage = (accounts: readonly LocalAccount[]): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Demo identity provider</title>
<style>
:root { color-scheme: light dark; font: 1.0625rem/1.5 system-ui, sans-serif }
body { max-width: 26rem; margin: 12vh auto 0; padding: 0 1.25rem }
button { display: block; width: 100%; margin: .5rem 0; padding: .75rem 1rem; font: inherit; text-align: left; cursor: pointer }
</style>
</head>
<body>
<main>
<h1>Demo identity provider</h1>
<p>Pick an account. There are no passwords here.</p>
<form method="post">
${accounts.map(({ id, claims }) => `<button name="account" value="${id}">${claims.name} · ${claims.email ?? 'no email'}</button>`).join('\n')}
<button name="account" value="">Decline</button>
</form>
</main>
</body>
</html>
`
