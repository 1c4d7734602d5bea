/** @jsxImportSource preact */
/** A reply as elements, or as it was written until what makes elements of it has come. */
import { type ComponentChildren, h, type VNode } from "preact"
import type { Markdown } from "./Markdown.ts"

export const Link = ({ children, href }: { readonly href: string; readonly children: ComponentChildren }) => (
  <a href={href} target="_blank" rel="noopener noreferrer nofollow">
    {children}
  </a>
)

const draw = (
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
  /** The element for `[index]`, null for a mark without a citation; without it marks are text. */
  readonly citation?: (index: number) => VNode | null
  readonly streaming?: boolean
}): VNode =>
  markdown === null ? (
    <p class="plain">{text}</p>
  ) : (
    draw("div", { class: "prose" }, ...markdown.elements(text, { h: draw, citation, streaming }))
  )
