/** A form. After a failed submission, the first invalid field gets the focus. */
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
  /** True from the submission until an invalid field got the focus. */
  const isSubmitted = useRef(false)
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
        isSubmitted.current = true
        onSubmit()
      }}
    >
      {problem === null ? null : <Problem problem={problem} />}
      {children}
    </form>
  )
}
