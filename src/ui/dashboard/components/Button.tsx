import type { ComponentProps, MouseEvent } from "react"
import css from "./Button.module.css"

interface Props extends Omit<ComponentProps<"button">, "className"> {
  /** `primary` once on each page; `danger` for destructive actions; `quiet` within rows. */
  readonly kind?: "primary" | "plain" | "danger" | "quiet"
  /** Its action is running: the button keeps the focus and does nothing. */
  readonly busy?: boolean
  /** An icon button: `aria-label` is its name. */
  readonly icon?: boolean
}

/** It stays the button that Enter in a field presses: without one, a form of one field would be sent again. */
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
