/** A labelled choice of one of several. */
import {
  Button as AriaButton,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  Select as AriaSelect,
  SelectValue,
  Text
} from "react-aria-components"
import css from "../Field.module.css"

interface SelectProps<K extends string> {
  readonly label: string
  readonly help?: string
  /** Key and label of each choice, in order. */
  readonly options: ReadonlyArray<readonly [K, string]>
  readonly value: K
  readonly onChange: (value: K) => void
  readonly isDisabled?: boolean
  /** The label is only for screen readers. */
  readonly compact?: boolean
}

export const Select = <K extends string>({
  label,
  help,
  options,
  value,
  onChange,
  isDisabled = false,
  compact = false
}: SelectProps<K>) => (
  <AriaSelect
    className={css["field"] ?? ""}
    value={value}
    isDisabled={isDisabled}
    onChange={(key) => {
      const chosen = options.find(([option]) => option === key)
      if (chosen !== undefined) onChange(chosen[0])
    }}
  >
    <Label className={compact ? "visually-hidden" : (css["label"] ?? "")}>{label}</Label>
    <AriaButton className={`${css["input"]} ${css["select"]} ${compact ? css["compact"] : ""}`}>
      <SelectValue />
      <span aria-hidden className={css["chevron"] ?? ""} />
    </AriaButton>
    {help === undefined ? null : (
      <Text slot="description" className={css["help"] ?? ""}>
        {help}
      </Text>
    )}
    <Popover className={css["popover"] ?? ""}>
      <ListBox className={css["options"] ?? ""}>
        {options.map(([key, words]) => (
          <ListBoxItem key={key} id={key} className={css["option"] ?? ""}>
            {words}
          </ListBoxItem>
        ))}
      </ListBox>
    </Popover>
  </AriaSelect>
)
