/**
 * Something over the page beside the button that opens it. The browser places it, closes it on Escape and on a press
 * elsewhere, and gives the focus back.
 */
import { type ComponentProps, type ReactNode, type ToggleEvent, useId, useRef, useState } from "react"
import css from "./Popover.module.css"

interface Props {
  /** Its accessible name. */
  readonly label: string
  readonly role: "dialog" | "menu"
  /** The button: it gets what opens the popover. */
  readonly button: (props: ComponentProps<"button">) => ReactNode
  /** Its content while it is open. */
  readonly children: (close: () => void) => ReactNode
  readonly className?: string | undefined
  /** Beyond which edge of the button it opens; below by default. */
  readonly above?: boolean
}

/** Keys that move the focus within a menu, with the place of the next item. */
const steps: Readonly<Record<string, (place: number, count: number) => number>> = {
  ArrowDown: (place, count) => (place + 1) % count,
  ArrowUp: (place, count) => (place + count - 1) % count,
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
          const step = steps[event.key]
          if (role !== "menu") return
          if (event.key === "Tab") close()
          if (step === undefined) return
          event.preventDefault()
          const all = items()
          const place = all.findIndex((item) => item === document.activeElement)
          all[step(place, all.length)]?.focus()
        }}
      >
        {isOpen ? children(close) : null}
      </div>
    </>
  )
}
