/** Check boxes: a group with descriptions, one without a visible label for table rows, and a switch. */
import { memo, type RefCallback, useId } from "react"
import css from "./Checkboxes.module.css"

interface Props<K extends string> {
  readonly label: string
  /** Key, name and description of each. */
  readonly options: ReadonlyArray<readonly [K, string, string]>
  readonly value: ReadonlyArray<K>
  readonly onChange: (value: ReadonlyArray<K>) => void
  readonly error?: string | undefined
  /** True if the names were typed by users, in any language. */
  readonly isNamedByPeople?: boolean
}

export const CheckboxGroup = <K extends string>({
  label,
  options,
  value,
  onChange,
  error,
  isNamedByPeople = false
}: Props<K>) => {
  const id = useId()
  return (
    <fieldset
      className={css["group"]}
      {...(error === undefined ? {} : { "aria-describedby": `${id}-error`, "aria-invalid": true })}
    >
      <legend className={css["label"]}>{label}</legend>
      {options.map(([key, name, meaning]) => (
        <label key={key} className={css["choice"]}>
          <input
            type="checkbox"
            checked={value.includes(key)}
            onChange={({ currentTarget: { checked } }) =>
              onChange([
                // Keeps selected keys that are not among the options.
                ...value.filter((other) => !options.some(([shown]) => shown === other)),
                ...options
                  .map(([other]) => other)
                  .filter((other) => (other === key ? checked : value.includes(other)))
              ])
            }
          />
          <span {...(isNamedByPeople ? { lang: "" } : {})}>
            <span className={css["name"]}>{name}</span> <span className={css["meaning"]}>{meaning}</span>
          </span>
        </label>
      ))}
      {error === undefined ? null : (
        <span id={`${id}-error`} className={css["error"]}>
          {error}
        </span>
      )}
    </fieldset>
  )
}

interface CheckboxProps {
  /** The accessible name of the row's check box. */
  readonly label: string
  readonly isSelected: boolean
  readonly isIndeterminate?: boolean
  readonly onChange: (isSelected: boolean) => void
}

const setIndeterminate: RefCallback<HTMLInputElement> = (input) => {
  if (input !== null) input.indeterminate = true
}
const setDeterminate: RefCallback<HTMLInputElement> = (input) => {
  if (input !== null) input.indeterminate = false
}

export const Checkbox = memo(({ label, isSelected, isIndeterminate = false, onChange }: CheckboxProps) => (
  <label className={css["alone"]}>
    <input
      ref={isIndeterminate ? setIndeterminate : setDeterminate}
      type="checkbox"
      aria-label={label}
      checked={isSelected}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
  </label>
))

interface SwitchProps {
  readonly label: string
  readonly isSelected: boolean
  readonly onChange: (on: boolean) => void
  readonly disabled?: boolean
}

export const Switch = ({ label, isSelected, onChange, disabled = false }: SwitchProps) => (
  <label className={css["switch"]}>
    <input
      type="checkbox"
      role="switch"
      checked={isSelected}
      disabled={disabled}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
    {label}
  </label>
)
