import { useState } from "react"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import css from "./Copyable.module.css"

interface Props {
  readonly label: string
  readonly value: string
}

/** Text to copy: a key, a command, an id. */
export const Copyable = ({ label, value }: Props) => {
  const t = useText(everywhere)
  const [copied, setCopied] = useState(false)
  return (
    <div className={css["copyable"]}>
      <pre tabIndex={0} aria-label={label}>
        {value}
      </pre>
      <Button
        kind="quiet"
        aria-label={`${t.copy}: ${label}`}
        onClick={() => {
          void navigator.clipboard.writeText(value).then(() => {
            setCopied(true)
            window.setTimeout(() => setCopied(false), 2_000)
          })
        }}
      >
        {copied ? t.copied : t.copy}
      </Button>
      <span role="status" className="visually-hidden">
        {copied ? t.copied : ""}
      </span>
    </div>
  )
}
