/** Actions of a row: the frequent one as a button, the others in a menu. Their labels have the row's name. */
import type { ReactNode } from "react"
import { Button } from "./Button.tsx"
import { Menu, type MenuAction } from "./Menu.tsx"
import { Problem } from "./Problem.tsx"
import css from "./Table.module.css"

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
  readonly actions: ReadonlyArray<MenuAction>
  /** The error of the last action. */
  readonly problem?: unknown
  /** The button of the frequent action, and dialogs. */
  readonly children?: ReactNode
}

export const RowActions = ({ of, actions, problem = null, children }: Props) => (
  <span className={css["actions"]}>
    {problem === null ? null : <Problem problem={problem} />}
    {children}
    <Menu of={of} actions={actions} />
  </span>
)

interface CellProps {
  readonly children: ReactNode
  /** Lines below in a smaller font. Null ones are not shown. */
  readonly notes?: ReadonlyArray<ReactNode>
}

/** A cell with a name and notes about it. */
export const Cell = ({ children, notes = [] }: CellProps) => (
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
