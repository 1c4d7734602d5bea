import css from "./Badge.module.css"

export type Tone = "neutral" | "accent" | "good" | "warn" | "bad"

/** A state label. The colour has the same meaning as the text. */
export const Badge = ({ tone, children }: { readonly tone: Tone; readonly children: string }) => (
  <span className={`${css["badge"]} ${css[tone]}`}>{children}</span>
)
