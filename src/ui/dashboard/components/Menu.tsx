/** A menu of a row or a page, for actions that are rare or destructive. */
import { Ellipsis } from "lucide-react"
import { type ReactNode, useState } from "react"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { ConfirmDialog, Dialog } from "./Dialog.tsx"
import { Popover } from "./Popover.tsx"
import css from "./Menu.module.css"

/** A dialog before a destructive action. */
interface Confirmation {
  readonly title: string
  readonly question: string
  readonly action: string
  readonly onConfirm: () => Promise<unknown>
}

/** A dialog with a form. */
interface FormDialog {
  readonly title: string
  readonly form: (close: () => void) => ReactNode
  /** For forms with many fields. */
  readonly wide?: boolean
}

export interface MenuAction {
  readonly label: string
  readonly does: (() => void) | Confirmation | FormDialog
}

interface Props {
  /** The object of the actions, which screen readers read with the button's label. */
  readonly of?: string
  readonly actions: ReadonlyArray<MenuAction>
}

export const Menu = ({ of, actions }: Props) => {
  const t = useText(commonTexts)
  // The label of the action, because `actions` may change while its dialog is open.
  const [openLabel, setOpenLabel] = useState("")
  if (actions.length === 0) return null
  const label = of === undefined ? t.more : `${t.more}: ${of}`
  const does = actions.find((action) => action.label === openLabel)?.does
  const openDialog = typeof does === "object" ? does : null
  const closeDialog = () => setOpenLabel("")
  return (
    <>
      <Popover
        role="menu"
        label={label}
        button={(buttonProps) => (
          <Button {...buttonProps} kind="quiet" icon aria-label={label}>
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
                else setOpenLabel(action.label)
              }}
            >
              {action.label}
            </button>
          ))
        }
      </Popover>
      {openDialog !== null && "question" in openDialog ? (
        <ConfirmDialog {...openDialog} isOpen onOpenChange={closeDialog} />
      ) : null}
      {openDialog !== null && "form" in openDialog ? (
        <Dialog title={openDialog.title} isOpen onClose={closeDialog} wide={openDialog.wide ?? false}>
          {openDialog.form(closeDialog)}
        </Dialog>
      ) : null}
    </>
  )
}
