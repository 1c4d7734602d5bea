/** What dialogs and their windows have in common. */
import type { ReactNode } from "react"
import css from "../Dialog.module.css"

export interface DialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly children: ReactNode
  /** For forms with many fields. */
  readonly wide?: boolean
}

export interface QuestionProps {
  readonly title: string
  readonly question: string
  readonly action: string
  readonly onConfirm: () => Promise<unknown>
  readonly isOpen: boolean
  readonly onOpenChange: (open: boolean) => void
}

/** The row of buttons that ends a form or a dialog. */
export const Actions = ({ children }: { readonly children: ReactNode }) => (
  <div className={css["actions"]}>{children}</div>
)
