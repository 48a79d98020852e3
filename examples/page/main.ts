import { ApiError, createClient } from 'gatehouse-client'
import { Positions } from 'gatehouse-client/buildings'

interface Cart {
  readonly id: number
  readonly name: string
  readonly transmitterId: string
}

const FLOOR = 'f1'
const SVG = 'http://www.w3.org/2000/svg'

const { call, session, realtime, signOut } = createClient()
const positions = new Positions(realtime)

const find = <E extends Element = HTMLElement>(selector: string): E => {
  const element = document.querySelector<E>(selector)
  if (element === null) throw new Error(`the page has no ${selector}`)
  return element
}

/** Calls `task` when the form is submitted, and shows the message of a failed call. */
const onSubmit = (selector: string, task: (fields: Record<string, unknown>) => Promise<unknown>): void => {
  const form = find<HTMLFormElement>(selector)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    find('#error').textContent = ''
    try {
      await task(Object.fromEntries(new FormData(form)))
      form.reset()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      find('#error').textContent = error.message
    }
  })
}

const showCarts = async (): Promise<void> => {
  const { data } = await call<{ data: Cart[] }>('GET', '/api/carts')
  find('ul').replaceChildren(
    ...data.map(({ name, transmitterId }) => {
      const item = document.createElement('li')
      item.textContent = `${name} (${transmitterId})`
      return item
    })
  )
}

const draw = (): void => {
  const dots = [...positions.store.positions.values()].map(({ entry: { transmitterId, position } }) => {
    const dot = document.createElementNS(SVG, 'circle')
    dot.setAttribute('cx', String(position.x))
    dot.setAttribute('cy', String(position.y))
    dot.setAttribute('r', '3')
    dot.append(Object.assign(document.createElementNS(SVG, 'title'), { textContent: transmitterId }))
    return dot
  })
  find('svg').replaceChildren(...dots)
}

const showSession = (): void => {
  const { isSignedIn, user } = session.state
  find('#login').hidden = isSignedIn
  find('#app').hidden = !isSignedIn
  find('#user').textContent = user?.displayName ?? ''
  positions.showFloor(isSignedIn ? FLOOR : null)
  if (isSignedIn) void showCarts()
}

onSubmit('#login', (credentials) => call('POST', '/api/auth/login', { body: credentials }))
onSubmit('#logout', signOut)
onSubmit('#add', async (cart) => {
  await call('POST', '/api/carts', { body: cart })
  await showCarts()
})
positions.on('position-batch', draw)
realtime.on('state', (state) => {
  find('#state').textContent = state
})
session.onChange(showSession)
showSession()
