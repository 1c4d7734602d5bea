import { Button as AriaButton, type ButtonProps } from "react-aria-components"
import css from "./Button.module.css"

interface Props extends Omit<ButtonProps, "className" | "isPending"> {
  /** `primary` once on each page; `danger` for destructive actions; `quiet` within rows. */
  readonly kind?: "primary" | "plain" | "danger" | "quiet"
  /** Its action is running: the button keeps the focus and does nothing. */
  readonly busy?: boolean
  /** An icon button: `aria-label` is its name. */
  readonly icon?: boolean
}

export const Button = ({
  kind = "plain",
  busy = false,
  icon = false,
  type = "button",
  onPress,
  ...props
}: Props) => (
  <AriaButton
    {...props}
    type={busy ? "button" : type}
    {...(busy || onPress === undefined ? {} : { onPress })}
    data-busy={busy ? "" : undefined}
    className={`${css["button"]} ${css[kind]} ${icon ? css["icon"] : ""}`}
  />
)
