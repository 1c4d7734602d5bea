/** A document with its passages in reading order: which turns cite each, and whether it is excluded from search. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useId, useState } from "react"
import { Link } from "wouter"
import {
  citations,
  document as documentQuery,
  type Passage,
  setExcluded,
  type SourceDocument
} from "../../../api/sources/Contents.ts"
import { headingPath } from "../../../../headingPath.ts"
import { atLeast, type User } from "../../../api/Session.ts"
import { source } from "../../../api/Sources.ts"
import { Badge } from "../../../components/Badge.tsx"
import { Button } from "../../../components/Button.tsx"
import { toast } from "../../../components/feedback/Toast.tsx"
import { Loaded, Page } from "../../../components/Page.tsx"
import { Problem } from "../../../components/Problem.tsx"
import { Prose } from "../../../components/replies/Prose.tsx"
import { useFormat } from "../../../text/Format.ts"
import { texts, useText } from "../../../text/Language.tsx"
import { LoadedPage } from "../../LoadedPage.tsx"
import { AddSource } from "../AddSource.tsx"
import css from "./Contents.module.css"
import { CopyableId } from "../../../components/CopyableId.tsx"
import { LoadMore } from "../../../components/LoadMore.tsx"

const words = texts(
  {
    back: "To the source",
    id: "Document ID",
    lead: "What search finds of this document, in reading order. Excluded passages are left out of every search, also after the next sync as long as their text is the same.",
    passages: "Passages",
    number: (place: string) => `Passage ${place}`,
    uncited: "Not cited lately",
    cited: (count: string) => (count === "1" ? "Cited by 1 reply" : `Cited by ${count} replies`),
    citedHelp: "Of the latest 2,000 replies to customers.",
    excluded: "Excluded from search",
    exclude: "Exclude",
    restore: "Take back",
    hasExcluded: "The passage is excluded from search.",
    hasRestored: "The passage is found again.",
    correct: "Write a correction",
    correctHelp:
      "What is changed in a passage would be lost at the next sync. This makes a question with your answer instead: whoever asks it gets your answer before anything else. The passage stays as it is; exclude it if it is wrong."
  },
  {
    back: "Zur Quelle",
    id: "ID des Dokuments",
    lead: "Was die Suche von diesem Dokument findet, in Lesereihenfolge. Ausgenommene Abschnitte fehlen in jeder Suche, auch nach der nächsten Synchronisierung, solange ihr Text derselbe ist.",
    passages: "Abschnitte",
    number: (place: string) => `Abschnitt ${place}`,
    uncited: "Zuletzt nicht zitiert",
    cited: (count: string) => (count === "1" ? "In 1 Antwort zitiert" : `In ${count} Antworten zitiert`),
    citedHelp: "Von den letzten 2.000 Antworten an Kunden.",
    excluded: "Von der Suche ausgenommen",
    exclude: "Ausnehmen",
    restore: "Zurücknehmen",
    hasExcluded: "Der Abschnitt ist von der Suche ausgenommen.",
    hasRestored: "Der Abschnitt wird wieder gefunden.",
    correct: "Korrektur schreiben",
    correctHelp:
      "Was in einem Abschnitt geändert würde, wäre bei der nächsten Synchronisierung verloren. Stattdessen entsteht eine Frage mit Ihrer Antwort: Wer sie stellt, bekommt diese Antwort vor allem anderen. Der Abschnitt bleibt, wie er ist; ist er falsch, lässt er sich ausnehmen."
  }
)

const CitingTurns = ({ passageId, sourceId }: { readonly sourceId: string; readonly passageId: string }) => {
  const { moment } = useFormat()
  const query = useQuery(citations(sourceId, passageId))
  return (
    <Loaded query={query}>
      {({ turns }) => (
        <ul className={css["turns"]}>
          {turns.map(({ at, conversationId, question, runId }) => (
            <li key={runId}>
              <Link lang="" href={`/conversations/${conversationId}`}>
                {question}
              </Link>{" "}
              <span className={css["soft"]}>{moment(at)}</span>
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  )
}

interface CardProps {
  readonly agentId: string
  readonly sourceId: string
  readonly sourceDocument: SourceDocument
  readonly passage: Passage
  readonly user: User
}

const PassageCard = ({ agentId, sourceDocument, passage, sourceId, user }: CardProps) => {
  const t = useText(words)
  const { number } = useFormat()
  const queries = useQueryClient()
  const turnsId = useId()
  const [showsTurns, setShowsTurns] = useState(false)
  const [isWritingCorrection, setWritingCorrection] = useState(false)
  const { citations: citationCount, excluded, heading, id, ordinal, text } = passage
  const change = useMutation({
    mutationFn: (next: boolean) => setExcluded(sourceId, id, next),
    onSuccess: async (_, next) => {
      await queries.invalidateQueries({ queryKey: ["sources", "one", sourceId] })
      toast(next ? t.hasExcluded : t.hasRestored, () => change.mutate(!next))
    }
  })
  return (
    <article
      className={css["passage"]}
      data-excluded={excluded ? "" : undefined}
      aria-label={t.number(number(ordinal + 1))}
    >
      <div className={css["text"]} lang="">
        <Prose text={text} />
      </div>
      <div className={css["foot"]}>
        <span className={css["soft"]}>{t.number(number(ordinal + 1))}</span>
        {excluded ? <Badge tone="warn">{t.excluded}</Badge> : null}
        {citationCount === 0 || !atLeast(user.role, "agent") ? (
          <span className={css["soft"]}>
            {citationCount === 0 ? t.uncited : t.cited(number(citationCount))}
          </span>
        ) : (
          <Button
            kind="quiet"
            aria-expanded={showsTurns}
            aria-controls={turnsId}
            onClick={() => setShowsTurns(!showsTurns)}
          >
            {t.cited(number(citationCount))}
          </Button>
        )}
        {atLeast(user.role, "admin") ? (
          <span className={css["actions"]}>
            <Button kind="quiet" onClick={() => setWritingCorrection(true)}>
              {t.correct}
            </Button>
            <Button kind="quiet" busy={change.isPending} onClick={() => change.mutate(!excluded)}>
              {excluded ? t.restore : t.exclude}
            </Button>
          </span>
        ) : null}
      </div>
      {change.error === null ? null : <Problem problem={change.error} />}
      {showsTurns ? (
        <div id={turnsId}>
          <p className={css["soft"]}>{t.citedHelp}</p>
          <CitingTurns sourceId={sourceId} passageId={id} />
        </div>
      ) : null}
      {isWritingCorrection ? (
        <AddSource
          agentId={agentId}
          isOpen
          onClose={() => setWritingCorrection(false)}
          correction={{
            id,
            title: t.correct,
            help: t.correctHelp,
            question: heading === "" ? sourceDocument.title : heading,
            answer: text
          }}
        />
      ) : null}
    </article>
  )
}

interface Props {
  readonly sourceId: string
  readonly id: string
  readonly user: User
}

const Document = ({ id, sourceId, user }: Props) => {
  const t = useText(words)
  const sourceQuery = useQuery(source(sourceId))
  const query = useInfiniteQuery(documentQuery(sourceId, id))
  const agentId = sourceQuery.data?.agentId ?? ""
  return (
    <LoadedPage query={query} what="document" back={`/sources/${sourceId}`}>
      {({ pages }) => {
        const sourceDocument = pages[0]?.document
        const passages = pages.flatMap((page) => page.passages)
        if (sourceDocument === undefined) return null
        return (
          <Page
            title={sourceDocument.title === "" ? sourceDocument.uri : sourceDocument.title}
            parent={[`/sources/${sourceId}`, sourceQuery.data?.name ?? t.back]}
            lead={
              <>
                {/^https?:/u.test(sourceDocument.uri) ? (
                  <a href={sourceDocument.uri} target="_blank" rel="noopener noreferrer nofollow">
                    {sourceDocument.uri}
                  </a>
                ) : (
                  sourceDocument.uri
                )}
                <br />
                {t.id}: <CopyableId id={id} label={t.id} />
              </>
            }
          >
            <p className={css["soft"]}>{t.lead}</p>
            <ol className={css["passages"]} aria-label={t.passages}>
              {passages.map((passage, index) => (
                <li key={passage.id}>
                  {passage.heading === "" || passage.heading === passages[index - 1]?.heading ? null : (
                    <h2 lang="" className={css["section"]}>
                      {headingPath(passage.heading)}
                    </h2>
                  )}
                  <PassageCard
                    agentId={agentId}
                    sourceId={sourceId}
                    sourceDocument={sourceDocument}
                    passage={passage}
                    user={user}
                  />
                </li>
              ))}
            </ol>
            <LoadMore query={query} />
          </Page>
        )
      }}
    </LoadedPage>
  )
}

export default Document
