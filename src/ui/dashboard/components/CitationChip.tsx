/** A citation's number and its passage. */
import type { Citation as Declared } from "../../../domain/chat/ChatTurn.ts"
import { Button, Dialog, DialogTrigger, Popover } from "react-aria-components"
import { texts, useText } from "../text/Language.tsx"
import css from "./CitationChip.module.css"

/** While a reply streams, only the citation's target is known. */
export type Citation = Pick<typeof Declared.Encoded, "index" | "title" | "url"> &
  Partial<Pick<typeof Declared.Encoded, "sourceName" | "text" | "score" | "span">>

const words = texts(
  { citation: (index: number) => `Citation ${index}`, open: "Open the source" },
  { citation: (index: number) => `Beleg ${index}`, open: "Quelle öffnen" }
)

interface Props {
  readonly citation: Citation
  /** Link to the passage beside the reply. Without it the passage opens over the page. */
  readonly onShow?: ((index: number) => void) | undefined
}

export const CitationChip = ({ citation, onShow }: Props) => {
  const t = useText(words)
  const { index, score, sourceName, text, title, url } = citation
  if (onShow !== undefined) {
    return (
      <Button className={css["chip"] ?? ""} aria-label={t.citation(index)} onPress={() => onShow(index)}>
        {index}
      </Button>
    )
  }
  return (
    <DialogTrigger>
      <Button className={css["chip"] ?? ""} aria-label={t.citation(index)}>
        {index}
      </Button>
      <Popover className={css["popover"] ?? ""}>
        <Dialog className={css["passage"] ?? ""} aria-label={t.citation(index)}>
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
