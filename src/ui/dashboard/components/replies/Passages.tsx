/** The passages that the model got: their scores, why they were found, and whether the reply cites them. */
import { Link } from "wouter"
import { headingPath } from "../../../headingPath.ts"
import type { RunPassage } from "../../../../domain/chat/AgentRun.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Badge } from "../Badge.tsx"
import type { Citation } from "./CitationChip.tsx"
import { highlightSpans } from "./highlight.ts"
import css from "./Passages.module.css"
import { Prose } from "./Prose.tsx"

export type Passage = typeof RunPassage.Encoded

/** The similarity of a passage to the question by words and by meaning, each from 0 to 1. */
export interface PassageScores {
  readonly id: string
  readonly lexical: number
  readonly semantic: number
}

const words = texts(
  {
    passages: "Passages",
    cited: "Cited",
    score: (share: string) => `Score ${share}`,
    byWords: (share: string) => `Words ${share}`,
    byMeaning: (share: string) => `Meaning ${share}`,
    wordsAlone: "Found by its words alone",
    open: "Open the page",
    whole: "Whole passage"
  },
  {
    passages: "Abschnitte",
    cited: "Zitiert",
    score: (share: string) => `Wert ${share}`,
    byWords: (share: string) => `Wörter ${share}`,
    byMeaning: (share: string) => `Bedeutung ${share}`,
    wordsAlone: "Allein durch seine Wörter gefunden",
    open: "Seite öffnen",
    whole: "Ganzer Abschnitt"
  }
)

/** Characters of a passage that is not expanded. */
const previewLength = 420

/** Replaces line breaks within paragraphs by spaces. The length stays the same. */
const withoutLineBreaks = (text: string): string =>
  text
    .split("```")
    .map((part, index) => (index % 2 === 0 ? part.replaceAll(/(?<!\n)\n(?![\n\-*+\d#|>])/gu, " ") : part))
    .join("```")

/** An excerpt of `text`: around the first span, or its beginning. */
const previewOf = (text: string, spans: ReadonlyArray<string>): string => {
  if (text.length <= previewLength) return text
  const first = Math.min(...spans.map((span) => text.indexOf(span)).filter((start) => start >= 0))
  const from = Number.isFinite(first) ? Math.max(0, first - 80) : 0
  // The excerpt does not begin within a code block, because its end would then open another one.
  const start = (text.slice(0, from).split("```").length - 1) % 2 === 0 ? from : text.lastIndexOf("```", from)
  const to = Math.min(text.length, start + previewLength)
  return `${start > 0 ? "… " : ""}${text.slice(start, to).trim()}${to < text.length ? " …" : ""}`
}

interface CardProps {
  readonly passage: Passage
  readonly scores: PassageScores | undefined
  readonly citations: ReadonlyArray<Citation>
  readonly isHighlighted: boolean
  readonly href: string
}

const Card = ({ citations, scores, href, isHighlighted, passage }: CardProps) => {
  const t = useText(words)
  const { percent } = useFormat()
  const { heading, index, score, sourceName, title, url } = passage
  const text = withoutLineBreaks(passage.text)
  const spans = citations.flatMap(({ span }) => {
    const start = span === undefined ? -1 : passage.text.indexOf(span)
    return span === undefined || start < 0 ? [] : [text.slice(start, start + span.length)]
  })
  return (
    <li
      className={css["card"]}
      data-passage={index}
      data-cited={citations.length > 0 ? "" : undefined}
      data-marked={isHighlighted ? "" : undefined}
    >
      <div className={css["head"]}>
        <span className={css["number"]}>{index}</span>
        <span className={css["title"]} lang="">
          {title}
          {heading === "" ? null : <span className={css["section"]}>{` › ${headingPath(heading)}`}</span>}
        </span>
        {citations.length === 0 ? null : <Badge tone="accent">{t.cited}</Badge>}
      </div>
      <div className={css["why"]}>
        <meter min={0} max={1} value={score} aria-label={t.score(percent(score))} />
        <span>{t.score(percent(score))}</span>
        {scores === undefined ? null : scores.semantic === 0 ? (
          <span className={css["reason"]}>{t.wordsAlone}</span>
        ) : (
          <>
            <span className={css["reason"]}>{t.byWords(percent(scores.lexical))}</span>
            <span className={css["reason"]}>{t.byMeaning(percent(scores.semantic))}</span>
          </>
        )}
      </div>
      <div className={css["text"]} lang="">
        <Prose
          text={highlightSpans(previewOf(text, spans), spans)}
          highlights
          streaming={text.length > previewLength}
        />
      </div>
      {text.length <= previewLength ? null : (
        <details>
          <summary>{t.whole}</summary>
          <div className={css["text"]} lang="">
            <Prose text={highlightSpans(text, spans)} highlights />
          </div>
        </details>
      )}
      <div className={css["foot"]}>
        <Link href={href}>{sourceName}</Link>
        {/^https?:/u.test(url) ? (
          <a href={url} target="_blank" rel="noopener noreferrer nofollow">
            {t.open}
          </a>
        ) : null}
      </div>
    </li>
  )
}

interface Props {
  readonly passages: ReadonlyArray<Passage>
  readonly scores?: ReadonlyArray<PassageScores>
  readonly citations?: ReadonlyArray<Citation>
  /** The number of the highlighted passage. */
  readonly highlighted?: number | null
  /** The link of the source's name; the page of the source by default. */
  readonly linkOf?: (passage: Passage) => string
}

const sourcePage = ({ sourceId }: Passage) => `/sources/${sourceId}`

export const Passages = ({
  citations = [],
  scores = [],
  linkOf = sourcePage,
  highlighted = null,
  passages
}: Props) => {
  const t = useText(words)
  return (
    <ol className={css["cards"]} aria-label={t.passages}>
      {passages.map((passage) => (
        <Card
          key={passage.index}
          passage={passage}
          scores={scores.find(({ id }) => id === passage.chunkId)}
          citations={citations.filter(({ index }) => index === passage.index)}
          isHighlighted={highlighted === passage.index}
          href={linkOf(passage)}
        />
      ))}
    </ol>
  )
}
