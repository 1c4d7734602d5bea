import css from "./Badge.module.css"

export type Tone = "neutral" | "accent" | "good" | "warn" | "bad"

/** A label of a state. The colour adds no meaning to the text. */
export const Badge = ({ tone, children }: { readonly tone: Tone; readonly children: string }) => (
  <span className={`${css["badge"]} ${css[tone]}`}>{children}</span>
)
