import { createClient } from './gatehouse-client.js'

const client = createClient()
const find = (id) => document.getElementById(id)
let failure = null
const showFailure = (error) => {
  failure = error
  find('error').textContent = error?.message ?? ''
}
const run = (task) => task().then(() => showFailure(null), showFailure)

const show = () => {
  const { isSignedIn, user } = client.session.state
  find('login').hidden = isSignedIn
  find('order').hidden = !isSignedIn
  find('user').textContent = user?.displayName ?? ''
  showFailure(null)
}
client.session.onChange(show)
show()

// The connection opens when the user has signed in.
const order = client.realtime.subscribe('orders:42')
order.on('publication', ({ data }) => {
  find('items').textContent = data.items
  if (failure?.retryable) showFailure(null) // the backend answers again
})
const showLive = () => {
  const reason = order.error ?? client.realtime.error
  const otherwise = reason ? `offline: ${reason.message}` : 'connecting …'
  find('live').textContent = order.state === 'subscribed' ? 'live' : otherwise
}
order.on('state', showLive)
client.realtime.on('state', showLive)

find('login').addEventListener('submit', (event) => {
  event.preventDefault()
  run(() => client.signIn(Object.fromEntries(new FormData(event.target))))
})
const addTen = () => client.call('POST', '/api/orders/42/items', { body: { count: 10 } })
find('add').addEventListener('click', () => run(addTen))
find('logout').addEventListener('click', () => run(() => client.signOut()))
