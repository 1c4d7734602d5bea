/** Renders the Markdown of models, customers and members as elements, never as HTML. */
import { createElement, type ReactNode, useMemo } from "react"
import { elements, type RenderOptions, spoken } from "../../../markdown/Elements.ts"
import css from "./Prose.module.css"

interface Props {
  readonly text: string
  /** Returns the element for the citation `[index]`, or null if there is none. Without it, citations are text. */
  readonly citation?: (index: number) => ReactNode
  /** The text is incomplete, because it is still being received. */
  readonly streaming?: boolean
  /** The text has markers of highlight.ts. */
  readonly highlights?: boolean
}

const h: RenderOptions<ReactNode>["h"] = (tag, props, ...children) => createElement(tag, props, ...children)

export const Prose = ({ text, citation, streaming, highlights }: Props) =>
  createElement(
    "div",
    { className: css["prose"], dir: "auto" },
    ...elements(text, { h, citation, streaming, highlights })
  )

/** `text` without its Markdown, for screen readers. */
export const useSpoken = (text: string): string => useMemo(() => spoken(text), [text])
