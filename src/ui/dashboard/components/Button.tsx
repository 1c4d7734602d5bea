import type { ComponentProps, MouseEvent } from "react"
import css from "./Button.module.css"

interface Props extends Omit<ComponentProps<"button">, "className"> {
  /** `primary` once per page, `danger` for destructive actions, `quiet` within rows. */
  readonly kind?: "primary" | "plain" | "danger" | "quiet"
  /** While the action is running, the button keeps the focus and does nothing. */
  readonly busy?: boolean
  /** A button with an icon only. It needs an `aria-label`. */
  readonly icon?: boolean
}

/** A busy button is not disabled, because Enter in a form without an enabled button would submit the form again. */
const doNothing = (event: MouseEvent) => event.preventDefault()

export const Button = ({
  kind = "plain",
  busy = false,
  icon = false,
  type = "button",
  onClick,
  ...props
}: Props) => (
  <button
    {...props}
    type={type}
    {...(busy ? { onClick: doNothing } : onClick === undefined ? {} : { onClick })}
    {...(busy ? { "aria-disabled": true } : {})}
    data-busy={busy ? "" : undefined}
    className={`${css["button"]} ${css[kind]} ${icon ? css["icon"] : ""}`}
  />
)
