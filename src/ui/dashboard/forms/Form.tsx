/** A form of the dashboard: errors are shown at their fields, and the first invalid field gets the focus. */
import { type ReactNode, useEffect, useRef } from "react"
import { Problem } from "../components/Problem.tsx"
import css from "./Form.module.css"

interface Props {
  readonly onSubmit: () => void
  /** A general error above the fields: see {@link useIssues}. */
  readonly problem?: unknown
  readonly children: ReactNode
}

export const Form = ({ children, onSubmit, problem = null }: Props) => {
  const form = useRef<HTMLFormElement>(null)
  /** True from the submission until its failure has been shown. */
  const sent = useRef(false)
  useEffect(() => {
    const wrong = form.current?.querySelector("[aria-invalid=true]")
    if (!sent.current || !(wrong instanceof HTMLElement)) return
    sent.current = false
    wrong.focus()
  })
  return (
    <form
      ref={form}
      className={css["form"]}
      onSubmit={(event) => {
        event.preventDefault()
        sent.current = true
        onSubmit()
      }}
    >
      {problem === null ? null : <Problem problem={problem} />}
      {children}
    </form>
  )
}
