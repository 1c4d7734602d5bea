/** Fields that most users do not change, in a collapsed section. */
import { type ReactNode, useEffect, useRef } from "react"
import { ChevronRight } from "lucide-react"
import { texts, useText } from "../text/Language.tsx"
import css from "./MoreOptions.module.css"

const words = texts({ more: "More options" }, { more: "Weitere Optionen" })

interface Props {
  /** Opens the section, because a field in it has a value or an error. It does not close automatically. */
  readonly isNeeded: boolean
  readonly children: ReactNode
}

export const MoreOptions = ({ children, isNeeded }: Props) => {
  const t = useText(words)
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (isNeeded && details.current !== null) details.current.open = true
  }, [isNeeded])
  return (
    <details
      ref={details}
      className={css["more"]}
      // The browser can only focus an invalid field if it is visible.
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
