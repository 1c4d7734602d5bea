/** One step of the guided start: a line with its state, and its content below. */
import { Check } from "lucide-react"
import { type ReactNode, Suspense, useId } from "react"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Start.module.css"

const words = texts({ done: "Done" }, { done: "Erledigt" })

interface Props {
  readonly number: number
  readonly title: string
  /** The state of the step, in a few words. */
  readonly state?: ReactNode
  readonly isDone: boolean
  readonly isOpen: boolean
  /** True if the content is loaded after the step opens. Space is reserved for it. */
  readonly isLoaded?: boolean
  readonly onToggle: () => void
  readonly children: ReactNode
}

export const Step = ({
  children,
  isDone,
  isLoaded = false,
  isOpen,
  number,
  onToggle,
  state,
  title
}: Props) => {
  const t = useText(words)
  const id = useId()
  return (
    <li className={css["step"]} data-open={isOpen}>
      <h2 className={css["heading"]}>
        <button type="button" aria-expanded={isOpen} aria-controls={id} onClick={onToggle}>
          <span className={css["number"]} data-done={isDone}>
            {isDone ? <Check aria-hidden size={15} strokeWidth={2.5} /> : number}
          </span>
          <span>{title}</span>
          {isDone ? <span className="visually-hidden">{t.done}</span> : null}
          {state === undefined ? null : <span className={css["state"]}>{state}</span>}
        </button>
      </h2>
      <div id={id} className={css["body"]} data-loaded={isLoaded ? "" : undefined} hidden={!isOpen}>
        {isOpen ? <Suspense>{children}</Suspense> : null}
      </div>
    </li>
  )
}
