/** The number of a citation. Pressing it shows the cited passage. */
import { headingPath } from "../../../headingPath.ts"
import type { Citation as Declared } from "../../../../domain/chat/ChatTurn.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./CitationChip.module.css"
import { Popover } from "../Popover.tsx"

/** While a reply streams, only the target of a citation is known. */
export type Citation = Pick<typeof Declared.Encoded, "index" | "title" | "url"> &
  Partial<Pick<typeof Declared.Encoded, "sourceName" | "text" | "score" | "span">>

const words = texts(
  { citation: (index: number) => `Citation ${index}`, open: "Open the source" },
  { citation: (index: number) => `Beleg ${index}`, open: "Quelle öffnen" }
)

const Passage = ({ citation }: { readonly citation: Citation }) => {
  const t = useText(words)
  const { percent } = useFormat()
  const { score, sourceName, text, title, url } = citation
  return (
    <div className={css["passage"]}>
      <strong>{headingPath(title)}</strong>
      {sourceName === undefined ? null : (
        <span className={css["soft"]}>{`${sourceName} · ${percent(score ?? 0)}`}</span>
      )}
      {text === undefined ? null : <p>{text}</p>}
      {/^https?:/.test(url) ? (
        <a href={url} target="_blank" rel="noopener noreferrer nofollow">
          {`${t.open}: ${url}`}
        </a>
      ) : null}
    </div>
  )
}

interface Props {
  readonly citation: Citation
  /** Shows the passage elsewhere on the page. Without it, the passage opens in a popover. */
  readonly onShow?: ((index: number) => void) | undefined
}

export const CitationChip = ({ citation, onShow }: Props) => {
  const t = useText(words)
  const { index } = citation
  const label = t.citation(index)
  if (onShow !== undefined) {
    return (
      <button
        type="button"
        className={css["chip"]}
        data-printed=""
        aria-label={label}
        onClick={() => onShow(index)}
      >
        {index}
      </button>
    )
  }
  return (
    <Popover
      role="dialog"
      label={label}
      button={(buttonProps) => (
        <button type="button" {...buttonProps} className={css["chip"]} data-printed="" aria-label={label}>
          {index}
        </button>
      )}
    >
      {() => <Passage citation={citation} />}
    </Popover>
  )
}
