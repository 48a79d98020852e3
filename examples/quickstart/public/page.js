import { createClient } from './gatehouse-client.js'

const client = createClient()
const find = (id) => document.getElementById(id)
const run = (task) => task().catch((error) => (find('error').textContent = error.message))

const show = () => {
  const { isSignedIn, user } = client.session.state
  find('login').hidden = isSignedIn
  find('order').hidden = !isSignedIn
  find('user').textContent = user?.displayName ?? ''
  find('error').textContent = ''
}
client.session.onChange(show)
show()

// The connection opens when the user has signed in.
client.realtime.subscribe('orders:42').on('publication', ({ data }) => {
  find('items').textContent = data.items
})

find('login').addEventListener('submit', (event) => {
  event.preventDefault()
  run(() => client.signIn(Object.fromEntries(new FormData(event.target))))
})
find('add').addEventListener('click', () =>
  run(() => client.call('POST', '/api/orders/42/items', { body: { count: 10 } }))
)
find('logout').addEventListener('click', () => run(() => client.signOut()))
