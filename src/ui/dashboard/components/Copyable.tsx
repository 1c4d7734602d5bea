import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { useCopied } from "./useCopied.ts"
import css from "./Copyable.module.css"

interface Props {
  readonly label: string
  readonly value: string
}

/** Text to copy: a key, a command, an id. */
export const Copyable = ({ label, value }: Props) => {
  const t = useText(everywhere)
  const [copied, copy] = useCopied()
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
