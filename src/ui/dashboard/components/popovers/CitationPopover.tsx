/** A citation's number with its passage over the page, which opens when it appears. */
import { useEffect, useState } from "react"
import { Button, Dialog, DialogTrigger, Popover } from "react-aria-components"
import { texts, useText } from "../../text/Language.tsx"
import css from "../CitationChip.module.css"
import type { Citation } from "./Citation.ts"

const words = texts({ open: "Open the source" }, { open: "Quelle öffnen" })

interface Props {
  readonly citation: Citation
  readonly label: string
}

export const CitationPopover = ({ citation, label }: Props) => {
  const t = useText(words)
  const [isOpen, setOpen] = useState(false)
  // After the button has the focus, which is given back to it when the passage closes.
  useEffect(() => setOpen(true), [])
  const { index, score, sourceName, text, title, url } = citation
  return (
    <DialogTrigger isOpen={isOpen} onOpenChange={setOpen}>
      <Button className={css["chip"] ?? ""} aria-label={label} autoFocus>
        {index}
      </Button>
      <Popover className={css["popover"] ?? ""}>
        <Dialog className={css["passage"] ?? ""} aria-label={label}>
          <strong>{title}</strong>
          {sourceName === undefined ? null : (
            <span className={css["soft"]}>{`${sourceName} · ${(score ?? 0).toFixed(2)}`}</span>
          )}
          {text === undefined ? null : <p>{text}</p>}
          {/^https?:/.test(url) ? (
            <a href={url} target="_blank" rel="noopener noreferrer nofollow">
              {`${t.open}: ${url}`}
            </a>
          ) : null}
        </Dialog>
      </Popover>
    </DialogTrigger>
  )
}
