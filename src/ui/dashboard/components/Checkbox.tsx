/** A check box of a row, named for those who cannot see the row. */
import { Checkbox as AriaCheckbox } from "react-aria-components"
import css from "./Checkbox.module.css"

interface Props {
  readonly label: string
  readonly isSelected: boolean
  readonly isIndeterminate?: boolean
  readonly onChange: (isSelected: boolean) => void
}

export const Checkbox = ({ label, ...props }: Props) => (
  <AriaCheckbox {...props} aria-label={label} className={css["choice"] ?? ""}>
    <span aria-hidden className={css["box"]} />
  </AriaCheckbox>
)
