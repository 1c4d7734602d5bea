/** The windows of dialogs and confirmations: loaded when the first one opens, by ../Dialog.tsx. */
import { useState } from "react"
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components"
import { everywhere } from "../../text/everywhere.ts"
import { useText } from "../../text/Language.tsx"
import { Button } from "../Button.tsx"
import { Problem } from "../Problem.tsx"
import css from "../Dialog.module.css"
import { Actions, type DialogProps, type QuestionProps } from "./DialogParts.tsx"

/** A click outside does not close it, because typed text or a one-time secret would be lost. Escape closes it. */
export const Window = ({ title, isOpen, onClose, children, wide = false }: DialogProps) => (
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

/** A confirmation of a destructive action. */
export const QuestionWindow = ({ title, question, action, onConfirm, ...open }: QuestionProps) => {
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
