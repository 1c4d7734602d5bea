import { Button as AriaButton, type ButtonProps } from "react-aria-components"
import css from "./Button.module.css"

interface Props extends Omit<ButtonProps, "className"> {
  /** `primary` once a page; `danger` where something is lost; `quiet` within rows. */
  readonly kind?: "primary" | "plain" | "danger" | "quiet"
}

export const Button = ({ kind = "plain", ...props }: Props) => (
  <AriaButton {...props} className={`${css["button"]} ${css[kind]}`} />
)
