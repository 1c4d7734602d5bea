/** Actions behind a button: those of a row or a page that are seldom needed, and those that destroy. */
import { Ellipsis } from "lucide-react"
import { type ReactNode, useState } from "react"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Dialog, Question } from "./Dialog.tsx"
import { Popover } from "./Popover.tsx"
import css from "./Menu.module.css"

/** The question before an action that destroys something. */
interface Confirmation {
  readonly title: string
  readonly question: string
  readonly action: string
  readonly onConfirm: () => Promise<unknown>
}

/** A form in a window. */
interface Formed {
  readonly title: string
  readonly form: (close: () => void) => ReactNode
  /** For forms with many fields. */
  readonly wide?: boolean
}

export interface MenuAction {
  readonly label: string
  readonly does: (() => void) | Confirmation | Formed
}

interface Props {
  /** The name of what the actions are about: read by screen readers with the button's. */
  readonly of?: string
  readonly actions: ReadonlyArray<MenuAction>
}

export const Menu = ({ of, actions }: Props) => {
  const t = useText(everywhere)
  // By its label: what the action does is that of the last rendering.
  const [opened, setOpened] = useState("")
  if (actions.length === 0) return null
  const label = of === undefined ? t.more : `${t.more}: ${of}`
  const does = actions.find((action) => action.label === opened)?.does
  const open = typeof does === "object" ? does : null
  const leave = () => setOpened("")
  return (
    <>
      <Popover
        role="menu"
        label={label}
        button={(opens) => (
          <Button {...opens} kind="quiet" icon aria-label={label}>
            <Ellipsis aria-hidden size={17} />
          </Button>
        )}
      >
        {(close) =>
          actions.map((action) => (
            <button
              key={action.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              className={`${css["item"]} ${"question" in action.does ? css["danger"] : ""}`}
              onClick={() => {
                close()
                if (typeof action.does === "function") action.does()
                else setOpened(action.label)
              }}
            >
              {action.label}
            </button>
          ))
        }
      </Popover>
      {open !== null && "question" in open ? <Question {...open} isOpen onOpenChange={leave} /> : null}
      {open !== null && "form" in open ? (
        <Dialog title={open.title} isOpen onClose={leave} wide={open.wide ?? false}>
          {open.form(leave)}
        </Dialog>
      ) : null}
    </>
  )
}
