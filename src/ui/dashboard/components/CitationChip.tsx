/** A citation's number, and the passage behind it. */
import { Button, Dialog, DialogTrigger, Popover } from "react-aria-components"
import { texts, useText } from "../text/Language.tsx"
import css from "./CitationChip.module.css"

export interface Citation {
  readonly index: number
  readonly title: string
  readonly sourceName: string
  readonly text: string
  readonly url: string
  readonly score: number
}

const words = texts(
  { citation: (index: number) => `Citation ${index}`, open: "Open the source" },
  { citation: (index: number) => `Beleg ${index}`, open: "Quelle öffnen" }
)

export const CitationChip = ({ citation }: { readonly citation: Citation }) => {
  const t = useText(words)
  const { index, score, sourceName, text, title, url } = citation
  return (
    <DialogTrigger>
      <Button className={css["chip"] ?? ""} aria-label={t.citation(index)}>
        {index}
      </Button>
      <Popover className={css["popover"] ?? ""}>
        <Dialog className={css["passage"] ?? ""} aria-label={t.citation(index)}>
          <strong>{title}</strong>
          <span className={css["soft"]}>{`${sourceName} · ${score.toFixed(2)}`}</span>
          <p>{text}</p>
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
