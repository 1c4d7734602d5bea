/** What can be done with one row: quiet buttons, each named with what it is about. */
import { Button } from "./Button.tsx"
import { Confirm, type QuestionProps } from "./Dialog.tsx"

interface RowButtonProps {
  readonly label: string
  /** What tells the row from the others, read out with the label. */
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
