/** Actions of one row: the frequent one as a button, the others in a menu, each labelled with its object. */
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
  /** Why the last one failed. */
  readonly problem?: unknown
  /** The frequent action, and dialogs that the others open. */
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
  /** Quieter lines below; null for none. */
  readonly notes?: ReadonlyArray<ReactNode>
}

/** A cell with what names the row or the thing, and what is said of it. */
export const Cell = ({ children, notes = [] }: CellProps) => (
  <span className={css["cell"]}>
    <span>{children}</span>
    {notes.map((note, place) =>
      note === null || note === "" ? null : (
        <span key={place} className={css["note"]}>
          {note}
        </span>
      )
    )}
  </span>
)
