// What the page looks like, and its filter. The content security policy allows both in the page itself and from nowhere
// else; without the script there is simply no filter.

export const STYLE = `
:root {
  --back: #fcfcfa; --raised: #fff; --text: #1d1f23; --muted: #5c616b; --line: #e3e3de; --code: #f2f2ee; --link: #1a56b0;
  --get: #1a56b0; --post: #17703c; --put: #8a5200; --patch: #6b3fa0; --delete: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #15171a; --raised: #1b1e22; --text: #e7e7e4; --muted: #a0a5ae; --line: #2f3338; --code: #22262b; --link: #8ab4f8;
    --get: #8ab4f8; --post: #7bd19a; --put: #eebb66; --patch: #c9a7f5; --delete: #f79a92;
  }
}
* { box-sizing: border-box }
html { color-scheme: light dark; scroll-padding-top: 4.5rem }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.55 system-ui, sans-serif }
a { color: var(--link) }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
code, pre { font: .87em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
p code, li code { background: var(--code); padding: .1em .35em; border-radius: 4px }
small { color: var(--muted); font-weight: 400 }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.2 } h1 small { font-size: .9rem }
h2 { margin: 2.5rem 0 0; font-size: 1.2rem; text-transform: capitalize }
h2 + p { margin: 0 0 .8rem; color: var(--muted) }
h3 { margin: 1.4rem 0 .4rem; font-size: .95rem } h4 { margin: 1rem 0 .4rem; font-size: .85rem; color: var(--muted) }
.skip { position: absolute; left: -100vw } .skip:focus { left: 1rem; top: .5rem; background: var(--raised); padding: .5rem }
header, .columns { max-width: 74rem; margin: 0 auto; padding: 0 1.5rem }
header { padding-top: 2rem } header p { margin: .3rem 0 1rem; color: var(--muted) }
.columns { display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: 2.5rem; padding-bottom: 6rem }
nav ul { position: sticky; top: 1rem; max-height: calc(100vh - 2rem); overflow: auto; margin: 0 -.5rem; padding: 0; list-style: none }
nav a { display: flex; justify-content: space-between; padding: .15rem .5rem; border-radius: 5px; text-decoration: none; text-transform: capitalize; color: inherit }
nav a:hover { background: var(--code) }
.about { max-width: 46rem } .about > :first-child { margin-top: 0 } .about ul { padding-left: 1.2rem }
#filter:not([hidden]) { position: sticky; top: 0; z-index: 1; display: flex; align-items: center; gap: .8rem; padding: .7rem 0; background: var(--back); border-bottom: 1px solid var(--line) }
#find { flex: 1; min-width: 0; padding: .45rem .7rem; font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 7px }
#found { color: var(--muted); font-size: .87rem; white-space: nowrap }
details { margin: .4rem 0; background: var(--raised); border: 1px solid var(--line); border-radius: 8px }
details[hidden], section[hidden] { display: none }
summary { display: flex; flex-wrap: wrap; align-items: baseline; gap: .2rem .8rem; padding: .5rem .8rem; cursor: pointer; border-radius: 8px; list-style: none }
summary::-webkit-details-marker { display: none }
summary::after { content: '+' / ''; width: 1ch; text-align: center; color: var(--muted) } details[open] > summary::after { content: '–' / '' }
summary:hover { background: var(--code) } details[open] > summary { border-bottom: 1px solid var(--line); border-radius: 8px 8px 0 0 }
summary b { width: 4.2rem; padding: .1rem 0; font-size: .72rem; letter-spacing: .04em; text-align: center; border: 1px solid; border-radius: 5px }
summary code { font-weight: 600; overflow-wrap: anywhere } summary span { flex: 1; color: var(--muted) }
summary i { font-size: .75rem; font-style: normal; color: var(--muted); border: 1px solid var(--line); border-radius: 9px; padding: 0 .5rem }
.get { color: var(--get) } .post { color: var(--post) } .put { color: var(--put) } .patch { color: var(--patch) } .delete { color: var(--delete) }
details > div { padding: .2rem 1rem 1rem } details p { margin: .5rem 0 }
.id { margin: .6rem 0 0; font: .8rem ui-monospace, monospace; color: var(--muted) }
.scroll { overflow-x: auto }
table { width: 100%; border-collapse: collapse; font-size: .9rem }
th { padding: .3rem .6rem .3rem 0; text-align: left; font-size: .78rem; font-weight: 600; color: var(--muted); border-bottom: 1px solid var(--line) }
td { padding: .35rem .6rem .35rem 0; vertical-align: top; border-bottom: 1px solid var(--line) }
tr:last-child td { border-bottom: 0 } td small { display: block; overflow-wrap: anywhere }
em { font-size: .75rem; font-style: normal; color: var(--delete) }
pre { margin: 0; padding: .8rem 1rem; overflow: auto; background: var(--code); border-radius: 7px }
@media (max-width: 50rem) {
  .columns { grid-template-columns: minmax(0, 1fr); gap: 1rem }
  nav ul { position: static; display: flex; flex-wrap: wrap; max-height: none } nav a { gap: .4rem }
  summary span { flex-basis: 100% }
}
`

export const SCRIPT = `
const find = document.getElementById('find')
const found = document.getElementById('found')
const sections = [...document.querySelectorAll('section')]
const operations = [...document.querySelectorAll('details')]

const filter = () => {
  const words = find.value.toLowerCase().split(/\\s+/)
  for (const operation of operations) operation.hidden = !words.every((word) => operation.dataset.find.includes(word))
  for (const section of sections) section.hidden = !section.querySelector('details:not([hidden])')
  found.value = find.value.trim() && operations.filter(({ hidden }) => !hidden).length + ' found'
}

const openAddressed = () => {
  const operation = document.getElementById(location.hash.slice(1))
  if (operation?.localName !== 'details') return
  operation.open = true
  operation.scrollIntoView()
}

find.form.hidden = false
find.addEventListener('input', filter)
find.form.addEventListener('submit', (event) => event.preventDefault())
addEventListener('hashchange', openAddressed)
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target === find) return
  event.preventDefault()
  find.focus()
})
filter()
openAddressed()
`
