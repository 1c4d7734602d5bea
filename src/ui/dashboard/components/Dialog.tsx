/** Dialogs, and confirmations of destructive actions. */
import { type ReactNode, useState } from "react"
import { Dialog as AriaDialog, DialogTrigger, Heading, Modal, ModalOverlay } from "react-aria-components"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Problem } from "./Problem.tsx"
import css from "./Dialog.module.css"

interface DialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly children: ReactNode
  /** For forms with many fields. */
  readonly wide?: boolean
}

/** A click outside does not close it, because typed text or a one-time secret would be lost. Escape closes it. */
export const Dialog = ({ title, isOpen, onClose, children, wide = false }: DialogProps) => (
  <ModalOverlay
    className={css["overlay"] ?? ""}
    isOpen={isOpen}
    onOpenChange={(open) => {
      if (!open) onClose()
    }}
  >
    <Modal className={`${css["modal"]} ${wide ? css["wide"] : ""}`}>
      <AriaDialog className={css["dialog"] ?? ""}>
        <Heading slot="title" className={css["title"] ?? ""}>
          {title}
        </Heading>
        {children}
      </AriaDialog>
    </Modal>
  </ModalOverlay>
)

export interface QuestionProps {
  readonly title: string
  readonly question: string
  readonly action: string
  readonly onConfirm: () => Promise<unknown>
  /** Omitted if a trigger opens it. */
  readonly isOpen?: boolean
  readonly onOpenChange?: (open: boolean) => void
}

/** A confirmation of a destructive action. */
export const Question = ({ title, question, action, onConfirm, ...open }: QuestionProps) => {
  const t = useText(everywhere)
  const [problem, setProblem] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  return (
    <ModalOverlay className={css["overlay"] ?? ""} isDismissable {...open}>
      <Modal className={css["modal"] ?? ""}>
        <AriaDialog role="alertdialog" className={css["dialog"] ?? ""}>
          {({ close }) => (
            <>
              <Heading slot="title" className={css["title"] ?? ""}>
                {title}
              </Heading>
              <p>{question}</p>
              {problem === null ? null : <Problem problem={problem} />}
              <Actions>
                <Button onPress={close}>{t.cancel}</Button>
                <Button
                  kind="danger"
                  busy={busy}
                  onPress={() => {
                    setBusy(true)
                    onConfirm()
                      .then(close, setProblem)
                      .finally(() => setBusy(false))
                  }}
                >
                  {action}
                </Button>
              </Actions>
            </>
          )}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}

interface ConfirmProps extends Omit<QuestionProps, "isOpen" | "onOpenChange"> {
  /** The element that opens the dialog. */
  readonly trigger: ReactNode
}

export const Confirm = ({ trigger, ...question }: ConfirmProps) => (
  <DialogTrigger>
    {trigger}
    <Question {...question} />
  </DialogTrigger>
)

/** The row of buttons that ends a form or a dialog. */
export const Actions = ({ children }: { readonly children: ReactNode }) => (
  <div className={css["actions"]}>{children}</div>
)
