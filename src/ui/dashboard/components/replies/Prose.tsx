/** Text of models, customers and members as elements, never as HTML. */
import { createElement, type ReactNode, useMemo } from "react"
import { type Drawing, elements, spoken } from "../../../markdown/Elements.ts"
import css from "./Prose.module.css"

interface Props {
  readonly text: string
  /** The element for `[index]`, null for a mark without a citation; without it marks are text. */
  readonly citation?: (index: number) => ReactNode
  /** More is to come. */
  readonly streaming?: boolean
  /** It has been `marked`. */
  readonly marks?: boolean
}

const h: Drawing<ReactNode>["h"] = (tag, props, ...children) => createElement(tag, props, ...children)

export const Prose = ({ text, citation, streaming, marks }: Props) =>
  createElement("div", { className: css["prose"] }, ...elements(text, { h, citation, streaming, marks }))

/** `text` without its marks, for screen readers. */
export const useSpoken = (text: string): string => useMemo(() => spoken(text), [text])
