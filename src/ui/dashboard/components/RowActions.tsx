/** Actions of a row: the frequent one as a button, the others in a menu. Their labels have the row's name. */
import type { ReactNode } from "react"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { toast } from "./feedback/Toast.tsx"
import { Menu, type MenuAction } from "./Menu.tsx"
import { Problem } from "./Problem.tsx"
import css from "./Table.module.css"
import { copyText } from "./useCopy.ts"

interface RowButtonProps {
  readonly label: string
  /** The row's name, which screen readers read with the label. */
  readonly of: string
  readonly busy?: boolean
  readonly onClick: () => void
}

export const RowButton = ({ label, of, busy = false, onClick }: RowButtonProps) => (
  <Button kind="quiet" aria-label={`${label}: ${of}`} busy={busy} onClick={onClick}>
    {label}
  </Button>
)

interface Props {
  /** The row's name. */
  readonly of: string
  /** The row's id. The menu then has an action that copies it. */
  readonly id?: string
  readonly actions: ReadonlyArray<MenuAction>
  /** The error of the last action. */
  readonly problem?: unknown
  /** The button of the frequent action, and dialogs. */
  readonly children?: ReactNode
}

export const RowActions = ({ of, id, actions, problem = null, children }: Props) => {
  const t = useText(commonTexts)
  const copyId = (text: string) =>
    void copyText(text).then((isCopied) => {
      if (isCopied) toast(t.copied)
    })
  const isDestructive = ({ does }: MenuAction) => "question" in does
  const idActions = id === undefined ? [] : [{ label: t.copyId, does: () => copyId(id) }]
  return (
    <span className={css["actions"]}>
      {problem === null ? null : <Problem problem={problem} />}
      {children}
      <Menu
        of={of}
        actions={[
          ...actions.filter((one) => !isDestructive(one)),
          ...idActions,
          ...actions.filter(isDestructive)
        ]}
      />
    </span>
  )
}

interface CellProps {
  readonly children: ReactNode
  /** Lines below in a smaller font. Null ones are not shown. */
  readonly notes: ReadonlyArray<ReactNode>
}

/** A cell with a name and notes about it. */
export const Cell = ({ children, notes }: CellProps) => (
  <span className={css["cell"]}>
    {children === null ? null : <span dir="auto">{children}</span>}
    {notes.map((note, index) =>
      note === null || note === "" ? null : (
        <span key={index} className={css["note"]}>
          {note}
        </span>
      )
    )}
  </span>
)
