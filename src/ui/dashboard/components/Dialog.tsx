/** Dialogs, and confirmations of destructive actions. */
import { cloneElement, lazy, type ReactElement, Suspense, useEffect, useState } from "react"
import { whenIdle } from "../window/whenIdle.ts"
import type { DialogProps, QuestionProps } from "./feedback/DialogParts.tsx"

export { Actions, type QuestionProps } from "./feedback/DialogParts.tsx"

const windows = () => import("./feedback/DialogWindow.tsx")
const Window = lazy(() => windows().then((module) => ({ default: module.Window })))
const QuestionWindow = lazy(() => windows().then((module) => ({ default: module.QuestionWindow })))

/** True from the first opening on. The code of windows is loaded before that, while the browser has nothing to do. */
const useOpened = (isOpen: boolean) => {
  const [opened, setOpened] = useState(isOpen)
  if (isOpen && !opened) setOpened(true)
  // Without a connection it is loaded again, and a failure told, when the window opens.
  useEffect(() => whenIdle(() => void windows().catch(() => {})), [])
  return opened
}

/** A click outside does not close it, because typed text or a one-time secret would be lost. Escape closes it. */
export const Dialog = (props: DialogProps) =>
  useOpened(props.isOpen) ? (
    <Suspense>
      <Window {...props} />
    </Suspense>
  ) : null

/** A confirmation of a destructive action. */
export const Question = (props: QuestionProps) =>
  useOpened(props.isOpen) ? (
    <Suspense>
      <QuestionWindow {...props} />
    </Suspense>
  ) : null

interface ConfirmProps extends Omit<QuestionProps, "isOpen" | "onOpenChange"> {
  /** The button that opens the dialog. */
  readonly trigger: ReactElement<{ readonly onPress?: () => void }>
}

export const Confirm = ({ trigger, ...question }: ConfirmProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      {cloneElement(trigger, { onPress: () => setOpen(true) })}
      <Question {...question} isOpen={isOpen} onOpenChange={setOpen} />
    </>
  )
}
