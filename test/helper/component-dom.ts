import { Window } from 'happy-dom'
import type { Teardown } from './child.js'

/** The globals that React DOM and Vue read. */
const NAMES = [
  'window',
  'document',
  'navigator',
  'Node',
  'Element',
  'HTMLElement',
  'SVGElement',
  'MathMLElement',
  'HTMLIFrameElement',
  'Event',
  'ShadowRoot'
] as const

/** A document in the process, for component tests without a browser. Import React DOM after it. */
export const installDom = (t: Teardown): Window => {
  const window = new Window({ url: 'http://localhost:3000/' })
  const before = NAMES.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const)
  for (const name of NAMES) {
    // The window has each of them, but not all in its type.
    const value: unknown = name === 'window' ? window : Reflect.get(window, name)
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  }
  t.teardown(async () => {
    await window.happyDOM.close()
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(globalThis, name)
      else Object.defineProperty(globalThis, name, descriptor)
    }
  })
  return window
}
