/** The used members of a DOM, and changes of it. */
export interface Node {
  readonly tagName: string
  readonly parentElement: Node | null
  readonly previousSibling: Node | null
  readonly nextSibling: Node | null
  readonly previousElementSibling: Node | null
  readonly nextElementSibling: Node | null
  readonly firstElementChild: Node | null
  readonly firstChild: Node | null
  readonly children: Iterable<Node>
  textContent: string | null
  readonly getAttribute: (name: string) => string | null
  readonly setAttribute: (name: string, value: string) => void
  readonly removeAttribute: (name: string) => void
  readonly remove: () => void
  readonly closest: (selector: string) => Node | null
  readonly insertBefore: (child: Node, before: Node | null) => void
  readonly querySelector: (selector: string) => Node | null
  readonly querySelectorAll: (selector: string) => Iterable<Node>
}
export interface Document {
  readonly documentElement: Node
  readonly createElement: (name: string) => Node
  /** `kinds` is a mask of the kinds of nodes: 4 for text. */
  readonly createTreeWalker: (root: Node, kinds: number) => { readonly nextNode: () => Node | null }
  readonly querySelectorAll: (selector: string) => Iterable<Node>
}

export const textOf = (node: Node): string => (node.textContent ?? "").trim()

/** True if more than half of the text is that of links. */
export const isMainlyLinks = (node: Node): boolean => {
  let linked = 0
  for (const link of node.querySelectorAll("a")) linked += textOf(link).length
  return 2 * linked > textOf(node).length
}

/** Moves the content of `node` into a new element in its place, without its attributes. */
export const replaceBy = (page: Document, node: Node, name: string): void => {
  const { parentElement: parent } = node
  if (parent === null) return
  const element = page.createElement(name)
  parent.insertBefore(element, node)
  for (let child = node.firstChild; child !== null; child = node.firstChild) element.insertBefore(child, null)
  node.remove()
}
