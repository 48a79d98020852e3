import { setImmediate } from 'node:timers/promises'
import type { Teardown } from './child.js'

const [ELEMENT, TEXT, COMMENT, DOCUMENT] = [1, 3, 8, 9]

/**
 * The part of a document that React DOM needs to show elements and text. It has no events, styles or layout: component tests
 * read the text only, and the tests of the examples use a browser.
 */
class TestNode {
  readonly nodeType: number
  readonly nodeName: string
  readonly namespaceURI = 'http://www.w3.org/1999/xhtml'
  readonly style = {}
  readonly ownerDocument: TestNode
  parentNode: TestNode | null = null
  childNodes: TestNode[] = []
  nodeValue: string

  constructor(nodeType: number, nodeName: string, ownerDocument: TestNode | null, nodeValue = '') {
    this.nodeType = nodeType
    this.nodeName = nodeName
    this.ownerDocument = ownerDocument ?? this
    this.nodeValue = nodeValue
  }

  get tagName(): string {
    return this.nodeName
  }

  get firstChild(): TestNode | null {
    return this.childNodes[0] ?? null
  }

  get lastChild(): TestNode | null {
    return this.childNodes.at(-1) ?? null
  }

  get nextSibling(): TestNode | null {
    const siblings = this.parentNode?.childNodes ?? []
    return siblings[siblings.indexOf(this) + 1] ?? null
  }

  get textContent(): string {
    return this.nodeType === TEXT ? this.nodeValue : this.childNodes.map(({ textContent }) => textContent).join('')
  }

  set textContent(text: string) {
    for (const child of this.childNodes) child.parentNode = null
    this.childNodes = []
    if (text !== '') this.appendChild(this.ownerDocument.createTextNode(text))
  }

  appendChild(child: TestNode): TestNode {
    return this.insertBefore(child, null)
  }

  insertBefore(child: TestNode, next: TestNode | null): TestNode {
    child.parentNode?.removeChild(child)
    this.childNodes.splice(next === null ? this.childNodes.length : this.childNodes.indexOf(next), 0, child)
    child.parentNode = this
    return child
  }

  removeChild(child: TestNode): TestNode {
    this.childNodes = this.childNodes.filter((each) => each !== child)
    child.parentNode = null
    return child
  }

  createElement(name: string): TestNode {
    return new TestNode(ELEMENT, name.toUpperCase(), this)
  }

  createTextNode(text: string): TestNode {
    return new TestNode(TEXT, '#text', this, text)
  }

  createComment(text: string): TestNode {
    return new TestNode(COMMENT, '#comment', this, text)
  }

  setAttribute(): void {}
  removeAttribute(): void {}
  addEventListener(): void {}
  removeEventListener(): void {}
}

interface TestDocument {
  createElement(name: string): HTMLElement & { readonly textContent: string }
}

/** Sets the globals that React DOM reads. Import React DOM after it. */
export const installDom = (t: Teardown): { readonly document: TestDocument } => {
  const document = Object.assign(new TestNode(DOCUMENT, '#document', null), { activeElement: null })
  class HTMLIFrameElement {}
  const window = Object.assign(new EventTarget(), { document, HTMLIFrameElement })
  const globals = { window, document, navigator: { userAgent: '' }, HTMLIFrameElement }
  const before = Object.keys(globals).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const)
  for (const [name, value] of Object.entries(globals))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  t.teardown(async () => {
    // React schedules its last effects as tasks.
    await setImmediate()
    await setImmediate()
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(globalThis, name)
      else Object.defineProperty(globalThis, name, descriptor)
    }
  })
  // React DOM uses no more of an element than the class has.
  return {
    document: {
      createElement: (name) => document.createElement(name) as unknown as ReturnType<TestDocument['createElement']>
    }
  }
}
