/** A group of check boxes with descriptions, and the check box of a table row. */
import { memo } from "react"
import { Checkbox, CheckboxGroup, FieldError, Label } from "react-aria-components"
import css from "./Choices.module.css"

interface Props<K extends string> {
  readonly label: string
  /** Key, name and meaning of each. */
  readonly options: ReadonlyArray<readonly [K, string, string]>
  readonly value: ReadonlyArray<K>
  readonly onChange: (value: ReadonlyArray<K>) => void
  readonly error?: string | undefined
  /** True if users chose the names, in any language. */
  readonly isNamedByPeople?: boolean
}

export const Choices = <K extends string>({
  label,
  options,
  value,
  onChange,
  error,
  isNamedByPeople = false
}: Props<K>) => (
  <CheckboxGroup
    className={css["group"] ?? ""}
    value={[...value]}
    validationBehavior="aria"
    isInvalid={error !== undefined}
    onChange={(chosen) => onChange(options.map(([key]) => key).filter((key) => chosen.includes(key)))}
  >
    <Label className={css["label"] ?? ""}>{label}</Label>
    {options.map(([key, name, meaning]) => (
      <Checkbox key={key} value={key} className={css["choice"] ?? ""}>
        <span aria-hidden className={css["box"]} />
        <span {...(isNamedByPeople ? { lang: "" } : {})}>
          <span className={css["name"]}>{name}</span> <span className={css["meaning"]}>{meaning}</span>
        </span>
      </Checkbox>
    ))}
    <FieldError className={css["error"] ?? ""}>{error}</FieldError>
  </CheckboxGroup>
)

interface ChoiceProps {
  /** The accessible name of the row's check box. */
  readonly label: string
  readonly isSelected: boolean
  readonly isIndeterminate?: boolean
  readonly onChange: (isSelected: boolean) => void
}

export const Choice = memo(({ label, ...props }: ChoiceProps) => (
  <Checkbox {...props} aria-label={label} className={`${css["choice"]} ${css["alone"]}`}>
    <span aria-hidden className={css["box"]} />
  </Checkbox>
))
