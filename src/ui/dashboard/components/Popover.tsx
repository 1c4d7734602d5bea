/**
 * A dialog or menu beside the button that opens it. The browser positions it, closes it on Escape and on a press
 * outside, and returns the focus.
 */
import { type ComponentProps, type ReactNode, type ToggleEvent, useId, useRef, useState } from "react"
import css from "./Popover.module.css"

interface Props {
  /** Its accessible name. */
  readonly label: string
  readonly role: "dialog" | "menu"
  /** Renders the button. `props` make it open the popover. */
  readonly button: (props: ComponentProps<"button">) => ReactNode
  /** Renders the content while the popover is open. */
  readonly children: (close: () => void) => ReactNode
  readonly className?: string | undefined
  /** Opens above the button instead of below it. */
  readonly above?: boolean
}

/** Keys that move the focus in a menu, with functions that return the index of the next item. */
const nextIndexByKey: Readonly<Record<string, (index: number, count: number) => number>> = {
  ArrowDown: (index, count) => (index + 1) % count,
  ArrowUp: (index, count) => (index + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1
}

export const Popover = ({ label, role, button, children, className = "", above = false }: Props) => {
  const id = useId()
  const box = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  const close = () => box.current?.hidePopover()
  const items = () => [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])]
  return (
    <>
      {button({ "aria-haspopup": role, "aria-expanded": isOpen, popoverTarget: id })}
      <div
        ref={box}
        id={id}
        popover="auto"
        role={role}
        aria-label={label}
        className={`${css["popover"]} ${above ? css["above"] : ""} ${className}`}
        onBeforeToggle={(event: ToggleEvent) => {
          if (event.newState === "open") setOpen(true)
        }}
        onToggle={(event: ToggleEvent) => {
          if (event.newState === "closed") setOpen(false)
          else if (role === "menu") items()[0]?.focus()
        }}
        onKeyDown={(event) => {
          const nextIndex = nextIndexByKey[event.key]
          if (role !== "menu") return
          if (event.key === "Tab") close()
          if (nextIndex === undefined) return
          event.preventDefault()
          const all = items()
          const index = all.findIndex((item) => item === document.activeElement)
          all[nextIndex(index, all.length)]?.focus()
        }}
      >
        {isOpen ? children(close) : null}
      </div>
    </>
  )
}
