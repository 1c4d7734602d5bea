/** The choice of Select.tsx with its list. It takes the focus of the button that it replaces. */
import { useEffect, useState } from "react"
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
import type { ListSelectProps } from "./SelectParts.ts"

export const ListSelect = ({
  label,
  help,
  options,
  value,
  onChange,
  isDisabled = false,
  compact = false,
  opensAtOnce
}: ListSelectProps) => {
  const [isOpen, setOpen] = useState(false)
  // After the button has the focus, which is given back to it when the list closes.
  useEffect(() => setOpen(opensAtOnce), [opensAtOnce])
  return (
    <AriaSelect
      className={css["field"] ?? ""}
      isOpen={isOpen}
      onOpenChange={setOpen}
      autoFocus
      value={value}
      isDisabled={isDisabled}
      onChange={(key) => {
        if (typeof key === "string") onChange(key)
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
}
