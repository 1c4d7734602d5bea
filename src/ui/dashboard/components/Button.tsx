import type { ComponentProps } from "react"
import css from "./Button.module.css"

interface Props extends Omit<ComponentProps<"button">, "className"> {
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
  onClick,
  ...props
}: Props) => (
  <button
    {...props}
    type={busy ? "button" : type}
    {...(busy || onClick === undefined ? {} : { onClick })}
    {...(busy ? { "aria-disabled": true } : {})}
    data-busy={busy ? "" : undefined}
    className={`${css["button"]} ${css[kind]} ${icon ? css["icon"] : ""}`}
  />
)
