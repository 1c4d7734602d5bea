import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { useCopy } from "./useCopy.ts"
import css from "./Copyable.module.css"

interface Props {
  readonly label: string
  readonly value: string
}

/** A text with a copy button: a key, a command, an id. */
export const Copyable = ({ label, value }: Props) => {
  const t = useText(commonTexts)
  const [copied, copy] = useCopy()
  return (
    <div className={css["copyable"]}>
      <pre tabIndex={0} aria-label={label}>
        {value}
      </pre>
      <Button kind="quiet" aria-label={`${t.copy}: ${label}`} onClick={() => copy(value)}>
        {copied ? t.copied : t.copy}
      </Button>
      <span role="status" className="visually-hidden">
        {copied ? t.copied : ""}
      </span>
    </div>
  )
}
