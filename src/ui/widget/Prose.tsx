/** @jsxImportSource preact */
/** Renders the Markdown of a message. Until the Markdown renderer is loaded, its source text is shown. */
import { type ComponentChildren, h, type VNode } from "preact"
import type { Markdown } from "./Markdown.ts"

export const Link = ({ children, href }: { readonly href: string; readonly children: ComponentChildren }) => (
  <a href={href} target="_blank" rel="noopener noreferrer nofollow">
    {children}
  </a>
)

const createNode = (
  tag: string,
  props: Readonly<Record<string, string | number>> | null,
  ...children: ReadonlyArray<VNode | string>
): VNode => h(tag, { ...props }, ...children)

export const Prose = ({
  citation,
  markdown,
  streaming = false,
  text
}: {
  readonly markdown: Markdown | null
  readonly text: string
  /** Returns the element for the citation `[index]`, or null if there is none. Without it, citations are text. */
  readonly citation?: (index: number) => VNode | null
  readonly streaming?: boolean
}): VNode =>
  markdown === null ? (
    <p class="plain">{text}</p>
  ) : (
    createNode("div", { class: "prose" }, ...markdown.elements(text, { h: createNode, citation, streaming }))
  )
