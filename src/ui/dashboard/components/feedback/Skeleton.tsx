/** A placeholder for loading content, which keeps the layout from shifting. */
import { commonTexts } from "../../text/commonTexts.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Skeleton.module.css"

interface Props {
  readonly rows: number
  /** Rows of persons, with an avatar and three lines; else one line each. */
  readonly person?: boolean
  /** Adds a line with the height of a page title above the rows. */
  readonly title?: boolean
}

export const Skeleton = ({ person = false, rows, title = false }: Props) => {
  const t = useText(commonTexts)
  return (
    <div className={css["skeleton"]}>
      <p role="status" className="visually-hidden">
        {t.loading}
      </p>
      {title ? <span aria-hidden className={css["title"]} /> : null}
      {Array.from({ length: rows }, (_, row) =>
        person ? (
          <div key={row} aria-hidden className={css["person"]}>
            <span className={css["avatar"]} />
            <span className={css["lines"]}>
              <span className={css["line"]} />
              <span className={css["line"]} />
              <span className={css["line"]} />
            </span>
          </div>
        ) : (
          <span key={row} aria-hidden className={css["line"]} />
        )
      )}
    </div>
  )
}
