import css from "./Badge.module.css"

export type Tone = "neutral" | "accent" | "good" | "warn" | "bad"

/** A word of state. Colour only repeats what the word says. */
export const Badge = ({ tone, children }: { readonly tone: Tone; readonly children: string }) => (
  <span className={`${css["badge"]} ${css[tone]}`}>{children}</span>
)
