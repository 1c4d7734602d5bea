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
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { useReason } from "../text/useReason.ts"
import { Button } from "./Button.tsx"
import { toast } from "./feedback/Toast.tsx"
import { Problem } from "./Problem.tsx"
import css from "./Dialog.module.css"

interface ActionsProps {
  readonly children: ReactNode
  /** At the foot of the window, while the form is longer than it. */
  readonly sticky?: boolean
}

/** The row of buttons that ends a form or a dialog. */
export const Actions = ({ children, sticky = false }: ActionsProps) => (
  <div className={`${css["actions"]} ${sticky ? css["sticky"] : ""}`}>{children}</div>
)

const Hold = createContext<(isHeld: boolean) => void>(() => undefined)

/** While `isHeld`, the surrounding window cannot be closed. */
export const useHold = (isHeld: boolean) => {
  const hold = useContext(Hold)
  useEffect(() => {
    hold(isHeld)
    return () => hold(false)
  }, [hold, isHeld])
}

interface WindowProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** For forms with many fields. */
  readonly wide?: boolean
  /** A question: a press outside is a no. */
  readonly isQuestion?: boolean
}

const Window = ({ title, onClose, children, wide = false, isQuestion = false }: WindowProps) => {
  const t = useText(everywhere)
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const [isHeld, hold] = useState(false)
  const leave = () => {
    if (!isHeld) onClose()
  }
  useEffect(() => {
    const { current } = dialog
    current?.showModal()
    return () => {
      // Gives the focus back to what opened it, if that is still there.
      current?.close()
      if (document.activeElement === document.body) {
        document.getElementById("content")?.focus({ preventScroll: true })
      }
    }
  }, [])
  // Outside of the page's own forms, which would take what is submitted here for theirs.
  return createPortal(
    <dialog
      ref={dialog}
      className={`${css["dialog"]} ${wide ? css["wide"] : ""}`}
      {...(isQuestion ? { role: "alertdialog" } : {})}
      aria-labelledby={heading}
      onCancel={(event) => {
        // Of this window, and not of a file picker in it.
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        leave()
      }}
      onClose={() => {
        // Browsers obey a second Escape.
        if (isHeld) dialog.current?.showModal()
      }}
      {...(isQuestion
        ? {
            onClick: (event) => {
              if (event.target === event.currentTarget) leave()
            }
          }
        : {})}
    >
      <div className={css["content"]}>
        <header className={css["head"]}>
          <h2 id={heading}>{title}</h2>
          {isQuestion ? null : (
            <Button kind="quiet" icon aria-label={t.close} busy={isHeld} onClick={onClose}>
              <X aria-hidden size={17} />
            </Button>
          )}
        </header>
        <Hold value={hold}>{children}</Hold>
      </div>
    </dialog>,
    document.body
  )
}

/** Tells in a toast that something failed which was sent from a window of that title and had no answer when it closed. */
const useLateFailures = (title: string) => {
  const mutations = useQueryClient().getMutationCache()
  const reason = useReason()
  const tell = useRef<(problem: unknown) => void>(() => undefined)
  tell.current = (problem) => toast(`${title}: ${reason(problem).sentence}`)
  useEffect(() => {
    // While the window is open, nothing else can be sent.
    const before = new Set(mutations.getAll())
    return () => {
      const sent = new Set(
        mutations.getAll().filter((one) => !before.has(one) && one.state.status === "pending")
      )
      const end = mutations.subscribe(({ mutation }) => {
        if (mutation === undefined || mutation.state.status === "pending" || !sent.delete(mutation)) return
        if (mutation.state.status === "error") tell.current(mutation.state.error)
        if (sent.size === 0) end()
      })
      if (sent.size === 0) end()
    }
  }, [mutations])
}

export interface DialogProps extends Omit<WindowProps, "isQuestion"> {
  readonly isOpen: boolean
}

const Opened = (props: WindowProps) => {
  useLateFailures(props.title)
  return <Window {...props} />
}

/** A press outside does not close it, because typed text or a one-time secret would be lost. Escape closes it. */
export const Dialog = ({ isOpen, ...props }: DialogProps) => (isOpen ? <Opened {...props} /> : null)

export interface QuestionProps {
  readonly title: string
  readonly question: string
  readonly action: string
  readonly onConfirm: () => Promise<unknown>
  readonly isOpen: boolean
  readonly onOpenChange: (open: boolean) => void
}

const Asked = ({ title, question, action, onConfirm, onOpenChange }: Omit<QuestionProps, "isOpen">) => {
  const t = useText(everywhere)
  const reason = useReason()
  const [problem, setProblem] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const isShown = useRef(true)
  useEffect(
    () => () => {
      isShown.current = false
    },
    []
  )
  const close = () => onOpenChange(false)
  const confirm = () => {
    setBusy(true)
    onConfirm()
      .then(
        () => {
          if (isShown.current) close()
        },
        (refusal: unknown) => {
          // Whoever has closed it is told nevertheless.
          if (isShown.current) setProblem(refusal)
          else toast(`${action}: ${reason(refusal).sentence}`)
        }
      )
      .finally(() => setBusy(false))
  }
  return (
    <Window title={title} onClose={close} isQuestion>
      <p>{question}</p>
      {problem === null ? null : <Problem problem={problem} />}
      <Actions>
        <Button autoFocus onClick={close}>
          {/* The action goes on without the question. */}
          {busy ? t.close : t.cancel}
        </Button>
        <Button kind="danger" busy={busy} onClick={confirm}>
          {action}
        </Button>
      </Actions>
    </Window>
  )
}

/** A confirmation of a destructive action. */
export const Question = ({ isOpen, ...props }: QuestionProps) => (isOpen ? <Asked {...props} /> : null)

interface ConfirmProps extends Omit<QuestionProps, "isOpen" | "onOpenChange"> {
  /** The button that opens the dialog. */
  readonly trigger: ReactElement<{ readonly onClick?: () => void }>
}

export const Confirm = ({ trigger, ...question }: ConfirmProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      {cloneElement(trigger, { onClick: () => setOpen(true) })}
      <Question {...question} isOpen={isOpen} onOpenChange={setOpen} />
    </>
  )
}
