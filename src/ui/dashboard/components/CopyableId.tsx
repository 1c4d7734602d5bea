import { Check, Copy } from "lucide-react"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import css from "./CopyableId.module.css"
import { useCopy } from "./useCopy.ts"

interface Props {
  readonly id: string
  /** What the id names, for screen readers and the title of the button. */
  readonly label: string
}

const icon = { "aria-hidden": true, size: 14, strokeWidth: 1.75 } as const

/** An id within a line of text, as the API takes it, with a copy button. */
export const CopyableId = ({ id, label }: Props) => {
  const t = useText(commonTexts)
  const [copied, copy] = useCopy()
  const title = `${t.copy}: ${label}`
  return (
    <span className={css["id"]}>
      <code translate="no">{id}</code>
      <Button kind="quiet" icon aria-label={title} title={title} onClick={() => copy(id)}>
        {copied ? <Check {...icon} /> : <Copy {...icon} />}
      </Button>
      <span role="status" className="visually-hidden">
        {copied ? t.copied : ""}
      </span>
    </span>
  )
}
