/** A placeholder of the loading content, so that the layout does not shift. */
import { everywhere } from "../../text/everywhere.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Skeleton.module.css"

interface Props {
  readonly rows: number
  /** A round shape before each row. */
  readonly avatar?: boolean
}

export const Skeleton = ({ avatar = false, rows }: Props) => {
  const t = useText(everywhere)
  return (
    <div className={css["skeleton"]}>
      <p role="status" className="visually-hidden">
        {t.loading}
      </p>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} aria-hidden className={css["row"]}>
          {avatar ? <span className={css["avatar"]} /> : null}
          <span className={css["lines"]}>
            <span />
            <span />
            <span />
          </span>
        </div>
      ))}
    </div>
  )
}
