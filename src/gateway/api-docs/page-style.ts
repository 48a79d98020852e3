/** The style of the page at /api/docs, with the colours of `src/ui/tokens.css`. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f5f7f8, #11171a);
  --surface: light-dark(#ffffff, #192125);
  --sunken: light-dark(#edf1f3, #141b1f);
  --line: light-dark(#dbe1e5, #2b373d);
  --text: light-dark(#1b2429, #e6ecef);
  --muted: light-dark(#54626b, #a0b0b9);
  --accent: light-dark(#0b6b6b, #63c9c2);
  --accent-strong: light-dark(#085454, #86dbd5);
  --accent-soft: light-dark(#e0f0ef, #17393a);
  --danger: light-dark(#b3261e, #ff938a);
  --danger-soft: light-dark(#fbeae9, #3a1f1d);
  --warning: light-dark(#7a5200, #f0c06a);
  --warning-soft: light-dark(#fdf3dc, #352a15);
  --good: light-dark(#1d6f39, #84d59e);
  --good-soft: light-dark(#e3f4e8, #18311f);
}

* { box-sizing: border-box; }

body {
  display: grid;
  grid-template-columns: 230px minmax(0, 1fr);
  max-width: 1440px;
  margin: 0 auto;
  background: var(--ground);
  color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  overflow-wrap: anywhere;
}

header {
  display: flex;
  grid-column: 1 / -1;
  flex-wrap: wrap;
  align-items: center;
  gap: 6px 14px;
  padding: 16px 20px;
  border-bottom: 1px solid var(--line);
  background: var(--surface);
}

header a { margin-left: auto; }
h1 { margin: 0; font-size: 1.3rem; }
h2 { margin: 28px 0 8px; font-size: 1.15rem; scroll-margin-top: 12px; }
h3 { display: inline; margin: 0; font-size: 0.95rem; font-weight: 600; }
h4 { margin: 16px 0 4px; font-size: 0.95rem; }
p { margin: 6px 0; }
a { color: var(--accent); }
a:hover { color: var(--accent-strong); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.muted { color: var(--muted); }
code, pre { font: 0.88em/1.5 ui-monospace, monospace; }

nav { padding: 12px 8px; }

nav ul {
  position: sticky;
  top: 12px;
  max-height: calc(100dvh - 24px);
  margin: 0;
  padding: 0;
  overflow-y: auto;
  list-style: none;
}

nav a {
  display: block;
  padding: 5px 12px;
  border-radius: 6px;
  color: var(--muted);
  font-weight: 500;
  text-decoration: none;
}

nav a:hover { background: var(--sunken); color: var(--text); }
main { padding: 4px 20px 40px; }

details {
  margin-bottom: 8px;
  border: 1px solid var(--line);
  border-radius: 10px;
  background: var(--surface);
}

summary {
  padding: 10px 14px;
  border-radius: 10px;
  cursor: pointer;
}

summary:hover { background: var(--sunken); }
details[open] > summary { border-bottom: 1px solid var(--line); border-radius: 10px 10px 0 0; }
details > div { padding: 6px 14px 14px; }

.method {
  display: inline-block;
  min-width: 66px;
  padding: 1px 8px;
  border-radius: 99px;
  background: var(--sunken);
  font-size: 0.8rem;
  text-align: center;
}

.get { background: var(--accent-soft); color: var(--accent-strong); }
.post { background: var(--good-soft); color: var(--good); }
:is(.put, .patch) { background: var(--warning-soft); color: var(--warning); }
.delete { background: var(--danger-soft); color: var(--danger); }

.fields { margin: 0; padding: 0; list-style: none; }
.fields > li { padding: 6px 0; border-top: 1px solid var(--line); }
.fields .fields { margin-left: 18px; }
.name { font-weight: 600; }

pre {
  margin: 4px 0;
  padding: 10px 12px;
  border-radius: 6px;
  background: var(--sunken);
  white-space: pre-wrap;
}

/* On a phone the sections are a row of links above the content. */
@media (width < 760px) {
  body { display: block; }
  header, main { padding-inline: 14px; }
  nav { padding: 8px 14px 0; }
  nav ul { position: static; display: flex; flex-wrap: wrap; gap: 4px; max-height: none; }
  nav a { padding: 5px 10px; border: 1px solid var(--line); background: var(--surface); }
  .fields .fields { margin-left: 10px; }
}
`
