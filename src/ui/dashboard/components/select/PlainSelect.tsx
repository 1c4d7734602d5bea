/**
 * The browser's own select, for what stands on every page: the lists of the other one (Select.tsx) are a quarter of what
 * a first page loads.
 */
import { useId } from "react"
import css from "../Field.module.css"

interface Props<K extends string> {
  /** Only for screen readers. */
  readonly label: string
  /** Key and label of each choice, in order. */
  readonly options: ReadonlyArray<readonly [K, string]>
  readonly value: K
  readonly onChange: (value: K) => void
}

export const PlainSelect = <K extends string>({ label, options, value, onChange }: Props<K>) => {
  const id = useId()
  return (
    <div className={css["plain"]}>
      <label className="visually-hidden" htmlFor={id}>
        {label}
      </label>
      <select
        id={id}
        className={`${css["input"]} ${css["compact"]}`}
        value={value}
        onChange={({ target }) => {
          const chosen = options.find(([option]) => option === target.value)
          if (chosen !== undefined) onChange(chosen[0])
        }}
      >
        {options.map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
      <span aria-hidden className={css["chevron"]} />
    </div>
  )
}
