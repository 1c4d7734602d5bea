/** A form. After a failed submission, the first invalid field gets the focus. */
import { type ReactNode, useEffect, useRef } from "react"
import { isOutdated } from "../api/Client.ts"
import { Problem } from "../components/Problem.tsx"
import { ConflictNotice } from "./DraftNotes.tsx"
import css from "./Form.module.css"
import type { Fields } from "./merge.ts"
import type { Draft } from "./useDraft.ts"

interface Props<A extends Fields> {
  readonly onSubmit: () => void
  /** A general error above the fields: see {@link useIssues}. */
  readonly problem?: unknown
  /** With a draft, a notice above the fields reports a conflict with another session. */
  readonly draft?: Draft<A>
  readonly children: ReactNode
}

export const Form = <A extends Fields>({ children, draft, onSubmit, problem = null }: Props<A>) => {
  const form = useRef<HTMLFormElement>(null)
  /** True from the submission until an invalid field got the focus. */
  const isSubmitted = useRef(false)
  /** True until the page shows that the submission is running. A second Enter may come before that. */
  const isHandled = useRef(false)
  useEffect(() => {
    const invalidField = form.current?.querySelector("[aria-invalid=true]")
    if (!isSubmitted.current || !(invalidField instanceof HTMLElement)) return
    isSubmitted.current = false
    invalidField.focus()
  })
  return (
    <form
      ref={form}
      className={css["form"]}
      onSubmit={(event) => {
        event.preventDefault()
        if (isHandled.current) return
        isHandled.current = true
        isSubmitted.current = true
        onSubmit()
        // Runs after the timer with which the state of a request is shown.
        setTimeout(() => (isHandled.current = false))
      }}
    >
      {problem === null || (draft !== undefined && isOutdated(problem)) ? null : (
        <Problem problem={problem} />
      )}
      {draft === undefined ? null : <ConflictNotice draft={draft} problem={problem} />}
      {children}
    </form>
  )
}
