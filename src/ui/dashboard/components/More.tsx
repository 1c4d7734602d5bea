/** Fields that most people leave as they are, behind one line. */
import { type ReactNode, useEffect, useRef } from "react"
import { ChevronRight } from "lucide-react"
import { texts, useText } from "../text/Language.tsx"
import css from "./More.module.css"

const words = texts({ more: "More options" }, { more: "Weitere Optionen" })

interface Props {
  /** Something in it is filled in, or wrong. It never closes by itself. */
  readonly isNeeded: boolean
  readonly children: ReactNode
}

export const More = ({ children, isNeeded }: Props) => {
  const t = useText(words)
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (isNeeded && details.current !== null) details.current.open = true
  }, [isNeeded])
  return (
    <details
      ref={details}
      className={css["more"]}
      // A field that the browser finds wrong can only take the focus where it is seen.
      onInvalidCapture={({ currentTarget }) => {
        currentTarget.open = true
      }}
    >
      <summary>
        <ChevronRight aria-hidden size={16} />
        {t.more}
      </summary>
      <div className={css["fields"]}>{children}</div>
    </details>
  )
}
