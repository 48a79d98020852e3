import type { OpenApiDocument } from './document.js'
import { Html, html, inline, prose } from './html.js'
import { operationView } from './operation-view.js'
import { SCRIPT, STYLE } from './page-assets.js'
import { follower, operationsOf } from './reading.js'

/** The whole description as one page, which asks nobody for anything else. */
export const apiPage = (document: OpenApiDocument, jsonPath: string): string => {
  const { info, tags } = document
  const operations = operationsOf(document)
  const follow = follower(document)
  const groups = tags.map(({ name, description }) => ({
    name,
    id: `tag-${name.replace(/\W+/g, '-')}`,
    description,
    operations: operations.filter(({ operation }) => operation.tags.includes(name))
  }))

  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API</title>
<link rel="icon" href="data:,">
<style>${new Html(STYLE)}</style>
</head>
<body>
<a class="skip" href="#operations">Skip to the operations</a>
<header>
<h1>${info.title} API <small>${info.version}</small></h1>
<p><a href="${jsonPath}">OpenAPI 3.1 document</a> · ${operations.length} operations</p>
</header>
<div class="columns">
<nav aria-label="Domains">
<ul>${groups.map(({ name, id, operations }) => html`<li><a href="#${id}">${name} <small>${operations.length}</small></a></li>`)}</ul>
</nav>
<main>
<div class="about">${prose(info.description)}</div>
<form id="filter" role="search" hidden>
<label for="find">Filter</label>
<input id="find" type="search" autocomplete="off" spellcheck="false" placeholder="zones, post, reset password …">
<output for="find" id="found"></output>
</form>
<div id="operations">
${groups.map(
  ({ name, id, description, operations }) => html`<section id="${id}">
<h2>${name}</h2>
<p>${inline(description)}</p>
${operations.map((placed) => operationView(placed, follow))}
</section>
`
)}
</div>
</main>
</div>
<script>${new Html(SCRIPT)}</script>
</body>
</html>
`.text
}
