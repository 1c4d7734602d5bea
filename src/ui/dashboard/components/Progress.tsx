import { useId } from "react"
import { useFormat } from "../text/Format.ts"
import css from "./Progress.module.css"

/** Progress in percent. */
export const Progress = ({ label, value }: { readonly label: string; readonly value: number }) => {
  const { percent } = useFormat()
  const id = useId()
  return (
    <div className={css["progress"]}>
      <label htmlFor={id} className={css["label"]}>
        {label}
      </label>
      <span aria-hidden className={css["value"]}>
        {percent(value / 100)}
      </span>
      <progress id={id} className={css["bar"]} max={100} value={value} />
    </div>
  )
}
