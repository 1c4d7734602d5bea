/** Step two: live progress of the ingestion. */
import type { SourceItem } from "../../api/Sources.ts"
import { Link } from "wouter"
import { texts, useText } from "../../text/Language.tsx"
import { SourceState } from "../sources/SourceState.tsx"
import { ReadingError } from "../sources/ReadingError.tsx"
import css from "./Start.module.css"

const words = texts(
  {
    none: "Nothing is being read yet.",
    leave: "You can leave this page: the reading goes on.",
    documents: (count: number) => (count === 1 ? "One page can be found." : `${count} pages can be found.`)
  },
  {
    none: "Noch wird nichts gelesen.",
    leave: "Sie können diese Seite verlassen: Das Lesen geht weiter.",
    documents: (count: number) =>
      count === 1 ? "Eine Seite ist auffindbar." : `${count} Seiten sind auffindbar.`
  }
)

interface Props {
  readonly sources: ReadonlyArray<SourceItem>
  readonly documents: number
  readonly isReading: boolean
}

const ReadingStep = ({ documents, isReading, sources }: Props) => {
  const t = useText(words)
  if (sources.length === 0) return <p className={css["soft"]}>{t.none}</p>
  return (
    <>
      <ul className={css["sources"]}>
        {sources.map((source) => (
          <li key={source.id}>
            <Link href={`/sources/${source.id}`}>{source.name}</Link>
            <SourceState source={source} />
            {source.lastError === null ? null : (
              <span className={css["error"]}>
                <ReadingError error={source.lastError} />
              </span>
            )}
          </li>
        ))}
      </ul>
      <p role="status" className={css["soft"]}>
        {isReading ? t.leave : documents > 0 ? t.documents(documents) : ""}
      </p>
    </>
  )
}

export default ReadingStep
