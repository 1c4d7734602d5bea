/** Actions of one row: quiet buttons, each labelled with its object. */
import { Button } from "./Button.tsx"
import { Confirm, type QuestionProps } from "./Dialog.tsx"

interface RowButtonProps {
  readonly label: string
  /** The row's name, which screen readers read with the label. */
  readonly of: string
  readonly busy?: boolean
  readonly onPress: () => void
}

export const RowButton = ({ label, of, busy = false, onPress }: RowButtonProps) => (
  <Button kind="quiet" aria-label={`${label}: ${of}`} busy={busy} onPress={onPress}>
    {label}
  </Button>
)

interface RowConfirmProps extends Omit<QuestionProps, "isOpen" | "onOpenChange"> {
  readonly of: string
}

/** One that asks first. */
export const RowConfirm = ({ of, ...question }: RowConfirmProps) => (
  <Confirm
    trigger={
      <Button kind="quiet" aria-label={`${question.action}: ${of}`}>
        {question.action}
      </Button>
    }
    {...question}
  />
)
