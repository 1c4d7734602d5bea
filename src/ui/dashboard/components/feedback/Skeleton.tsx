/** A placeholder of the loading content, so that the layout does not shift. */
import { everywhere } from "../../text/everywhere.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Skeleton.module.css"

interface Props {
  readonly rows: number
  /** Each row is that of a person: a round shape and three lines, else one line. */
  readonly person?: boolean
  /** A line as high as the title of a page, above the rows. */
  readonly title?: boolean
}

export const Skeleton = ({ person = false, rows, title = false }: Props) => {
  const t = useText(everywhere)
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
