/** Figures side by side, each with a title, a value and a note. */
import type { ReactNode } from "react"
import css from "./Figures.module.css"

export const Figures = ({ children }: { readonly children: ReactNode }) => (
  <div className={css["figures"]}>{children}</div>
)

interface FigureProps {
  readonly title: string
  readonly value: string
  readonly note?: ReactNode
  /** The used share of a limit, from 0 to 1, shown as a bar. */
  readonly share?: number
}

/** From this share on, the bar has a warning colour. */
const nearLimit = 0.9

export const Figure = ({ title, value, note, share }: FigureProps) => (
  <div className={css["figure"]}>
    <span className={css["soft"]}>{title}</span>
    <span className={css["value"]}>{value}</span>
    {note === undefined ? null : <span className={css["soft"]}>{note}</span>}
    {share === undefined ? null : (
      <span className={css["track"]} aria-hidden>
        <span
          className={share >= nearLimit ? css["full"] : css["bar"]}
          style={{ width: `${Math.min(100, share * 100)}%` }}
        />
      </span>
    )}
  </div>
)
