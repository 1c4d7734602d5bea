/** Dialogs, and confirmations of destructive actions. */
import { useQueryClient } from "@tanstack/react-query"
import { X } from "lucide-react"
import {
  cloneElement,
  createContext,
  type ReactElement,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useRef,
  useState
} from "react"
import { createPortal } from "react-dom"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { useReason } from "../text/useReason.ts"
import { Button } from "./Button.tsx"
import { toast } from "./feedback/Toast.tsx"
import { Problem } from "./Problem.tsx"
import css from "./Dialog.module.css"

interface ActionsProps {
  readonly children: ReactNode
  /** Keeps the buttons visible at the bottom of the window while a long form is scrolled. */
  readonly sticky?: boolean
}

/** The row of buttons that ends a form or a dialog. */
export const Actions = ({ children, sticky = false }: ActionsProps) => (
  <div className={`${css["actions"]} ${sticky ? css["sticky"] : ""}`}>{children}</div>
)

const CloseBlocker = createContext<(isBlocked: boolean) => void>(() => undefined)

/** While `isBlocked`, the surrounding dialog cannot be closed. */
export const useBlockClose = (isBlocked: boolean) => {
  const setBlocked = useContext(CloseBlocker)
  useEffect(() => {
    setBlocked(isBlocked)
    return () => setBlocked(false)
  }, [setBlocked, isBlocked])
}

interface WindowProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** For forms with many fields. */
  readonly wide?: boolean
  /** A confirmation. A press outside of it closes it. */
  readonly isConfirmation?: boolean
}

const Window = ({ title, onClose, children, wide = false, isConfirmation = false }: WindowProps) => {
  const t = useText(commonTexts)
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const [isBlocked, setBlocked] = useState(false)
  const close = () => {
    if (!isBlocked) onClose()
  }
  useEffect(() => {
    const { current } = dialog
    current?.showModal()
    return () => {
      // Closing returns the focus to the element that opened the dialog, if it still exists.
      current?.close()
      if (document.activeElement === document.body) {
        document.getElementById("content")?.focus({ preventScroll: true })
      }
    }
  }, [])
  // Rendered outside the page's forms, which would otherwise handle submissions in the dialog.
  return createPortal(
    <dialog
      ref={dialog}
      className={`${css["dialog"]} ${wide ? css["wide"] : ""}`}
      {...(isConfirmation ? { role: "alertdialog" } : {})}
      aria-labelledby={heading}
      onCancel={(event) => {
        // Ignores the event of a file picker in the dialog.
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        close()
      }}
      onClose={() => {
        // A second Escape closes the dialog regardless of `onCancel`.
        if (isBlocked) dialog.current?.showModal()
      }}
      {...(isConfirmation
        ? {
            onClick: (event) => {
              if (event.target === event.currentTarget) close()
            }
          }
        : {})}
    >
      <div className={css["content"]}>
        <header className={css["head"]}>
          <h2 id={heading}>{title}</h2>
          {isConfirmation ? null : (
            <Button kind="quiet" icon aria-label={t.close} busy={isBlocked} onClick={onClose}>
              <X aria-hidden size={17} />
            </Button>
          )}
        </header>
        <CloseBlocker value={setBlocked}>{children}</CloseBlocker>
      </div>
    </dialog>,
    document.body
  )
}

/** Shows a toast if a request that was sent from the dialog fails after the dialog was closed. */
const useLateFailures = (title: string) => {
  const mutations = useQueryClient().getMutationCache()
  const reason = useReason()
  const report = useRef<(problem: unknown) => void>(() => undefined)
  report.current = (problem) => toast(`${title}: ${reason(problem).sentence}`)
  useEffect(() => {
    // While the dialog is open, all new mutations are its own.
    const earlier = new Set(mutations.getAll())
    return () => {
      const pending = new Set(
        mutations.getAll().filter((one) => !earlier.has(one) && one.state.status === "pending")
      )
      const unsubscribe = mutations.subscribe(({ mutation }) => {
        if (mutation === undefined || mutation.state.status === "pending" || !pending.delete(mutation)) return
        if (mutation.state.status === "error") report.current(mutation.state.error)
        if (pending.size === 0) unsubscribe()
      })
      if (pending.size === 0) unsubscribe()
    }
  }, [mutations])
}

export interface DialogProps extends Omit<WindowProps, "isQuestion"> {
  readonly isOpen: boolean
}

const OpenDialog = (props: WindowProps) => {
  useLateFailures(props.title)
  return <Window {...props} />
}

/** A press outside does not close the dialog, because input or a one-time secret would be lost. Escape closes it. */
export const Dialog = ({ isOpen, ...props }: DialogProps) => (isOpen ? <OpenDialog {...props} /> : null)

export interface ConfirmDialogProps {
  readonly title: string
  readonly question: string
  readonly action: string
  readonly onConfirm: () => Promise<unknown>
  readonly isOpen: boolean
  readonly onOpenChange: (open: boolean) => void
}

const OpenConfirmDialog = ({
  title,
  question,
  action,
  onConfirm,
  onOpenChange
}: Omit<ConfirmDialogProps, "isOpen">) => {
  const t = useText(commonTexts)
  const reason = useReason()
  const [problem, setProblem] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const isMounted = useRef(true)
  useEffect(
    () => () => {
      isMounted.current = false
    },
    []
  )
  const close = () => onOpenChange(false)
  const confirm = () => {
    setBusy(true)
    onConfirm()
      .then(
        () => {
          if (isMounted.current) close()
        },
        (refusal: unknown) => {
          // Also reported if the dialog was closed meanwhile.
          if (isMounted.current) setProblem(refusal)
          else toast(`${action}: ${reason(refusal).sentence}`)
        }
      )
      .finally(() => setBusy(false))
  }
  return (
    <Window title={title} onClose={close} isConfirmation>
      <p>{question}</p>
      {problem === null ? null : <Problem problem={problem} />}
      <Actions>
        <Button autoFocus onClick={close}>
          {/* Closing the dialog does not stop the action. */}
          {busy ? t.close : t.cancel}
        </Button>
        <Button kind="danger" busy={busy} onClick={confirm}>
          {action}
        </Button>
      </Actions>
    </Window>
  )
}

/** A dialog that asks before a destructive action. */
export const ConfirmDialog = ({ isOpen, ...props }: ConfirmDialogProps) =>
  isOpen ? <OpenConfirmDialog {...props} /> : null

interface ConfirmButtonProps extends Omit<ConfirmDialogProps, "isOpen" | "onOpenChange"> {
  /** The button that opens the dialog. */
  readonly trigger: ReactElement<{ readonly onClick?: () => void }>
}

/** A button whose action is confirmed in a dialog. */
export const ConfirmButton = ({ trigger, ...question }: ConfirmButtonProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      {cloneElement(trigger, { onClick: () => setOpen(true) })}
      <ConfirmDialog {...question} isOpen={isOpen} onOpenChange={setOpen} />
    </>
  )
}
