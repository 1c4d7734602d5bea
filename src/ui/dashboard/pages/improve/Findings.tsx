/** Passages that contradict or repeat each other, and old pages that do not help. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useRef, useState } from "react"
import { Link } from "wouter"
import {
  dismissFinding,
  type Finding,
  type FindingKind,
  findings,
  restoreFinding
} from "../../api/improve/Findings.ts"
import { headingPath } from "../../../headingPath.ts"
import { Badge, type Tone } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Switch } from "../../components/Checkboxes.tsx"
import { toast } from "../../components/feedback/Toast.tsx"
import { Card, Empty, Loaded } from "../../components/Page.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import { findingWords } from "./findingWords.ts"
import css from "./Improve.module.css"
import { markDifferences } from "./markDifferences.ts"
import { reasonText, differingValues } from "./findingReasons.ts"
import { LoadMore } from "../../components/LoadMore.tsx"

const words = texts(
  {
    findings: "Findings",
    kind: "Kind of finding",
    dismissed: "Show dismissed ones",
    dismiss: "Dismiss",
    dismissOf: (reason: string) => `Dismiss: ${reason}`,
    restore: "Restore",
    restoreOf: (reason: string) => `Restore: ${reason}`,
    isDismissed: "Finding dismissed",
    isRestored: "Finding restored",
    comparing: "Passages are still being compared. What is found appears here.",
    empty: "Nothing found",
    emptyLead:
      "Passages that contradict or repeat each other and old pages whose answers were rated down are listed here. Everything has been compared.",
    noneDismissed: "Nothing dismissed",
    noneDismissedLead: "Findings that you dismiss are kept here, and can be restored.",
    toSources: "Open the sources",
    openPage: "Open the page",
    whole: "Whole passage"
  },
  {
    findings: "Funde",
    kind: "Art des Funds",
    dismissed: "Verworfene zeigen",
    dismiss: "Verwerfen",
    dismissOf: (reason: string) => `Verwerfen: ${reason}`,
    restore: "Wiederherstellen",
    restoreOf: (reason: string) => `Wiederherstellen: ${reason}`,
    isDismissed: "Fund verworfen",
    isRestored: "Fund wiederhergestellt",
    comparing: "Abschnitte werden noch verglichen. Was gefunden wird, erscheint hier.",
    empty: "Nichts gefunden",
    emptyLead:
      "Hier stehen Abschnitte, die sich widersprechen oder wiederholen, und alte Seiten, deren Antworten schlecht bewertet wurden. Alles wurde verglichen.",
    noneDismissed: "Nichts verworfen",
    noneDismissedLead: "Verworfene Funde bleiben hier und lassen sich wiederherstellen.",
    toSources: "Quellen öffnen",
    openPage: "Seite öffnen",
    whole: "Ganzer Abschnitt"
  }
)

const tones: Readonly<Record<FindingKind, Tone>> = {
  contradiction: "bad",
  duplicate: "neutral",
  stale: "warn"
}

interface PassageProps {
  readonly passage: Finding["passages"][number]
  readonly other: Finding["passages"][number] | undefined
  /** The parts that the other passage does not have. */
  readonly values: ReadonlyArray<string>
}

const Passage = ({ other, passage, values }: PassageProps) => {
  const t = useText(words)
  const { heading, said, sourceId, sourceName, text, title, url } = passage
  const quote = said ?? text
  const parts =
    other === undefined
      ? [{ text: quote, isNew: false }]
      : markDifferences(quote, other.said ?? other.text, values)
  return (
    <div className={css["passage"]}>
      <span lang="" className={css["title"]}>
        {title}
        {heading === "" ? null : ` › ${headingPath(heading)}`}
      </span>
      <blockquote lang="" className={css["quote"]}>
        {parts.map((part, index) =>
          part.isNew ? <mark key={index}>{part.text}</mark> : <span key={index}>{part.text}</span>
        )}
      </blockquote>
      {said === null ? null : (
        <details className={css["more"]}>
          <summary>{t.whole}</summary>
          <p lang="" className={css["quote"]}>
            {text}
          </p>
        </details>
      )}
      <div className={css["links"]}>
        <Link href={`/sources/${sourceId}`} lang="">
          {sourceName}
        </Link>
        {/^https?:/u.test(url) ? (
          <a href={url} target="_blank" rel="noopener noreferrer nofollow">
            {t.openPage}
          </a>
        ) : null}
      </div>
    </div>
  )
}

interface FindingCardProps {
  readonly finding: Finding
  readonly mayChange: boolean
  readonly busy: boolean
  /** Dismisses or restores it. */
  readonly onClick: () => void
}

const FindingCard = ({ busy, finding, mayChange, onClick }: FindingCardProps) => {
  const t = useText(words)
  const labels = useText(findingWords)
  const format = useFormat()
  const { dismissedAt, kind, passages, reasons } = finding
  const [first, second] = passages
  const [firstValues, secondValues] = differingValues(finding)
  const reason = reasons.map((each) => reasonText(labels, format, each)).join(" ")
  return (
    <li>
      <Card>
        <div className={css["head"]}>
          <div>
            <Badge tone={tones[kind]}>{labels[kind]}</Badge>
            <h3>{reason}</h3>
          </div>
          {mayChange ? (
            <Button
              busy={busy}
              aria-label={dismissedAt === null ? t.dismissOf(reason) : t.restoreOf(reason)}
              onClick={onClick}
            >
              {dismissedAt === null ? t.dismiss : t.restore}
            </Button>
          ) : null}
        </div>
        <div className={css["beside"]}>
          {first === undefined ? null : <Passage passage={first} other={second} values={firstValues} />}
          {second === undefined ? null : <Passage passage={second} other={first} values={secondValues} />}
        </div>
      </Card>
    </li>
  )
}

interface Props {
  readonly agentId: string
  readonly mayChange: boolean
}

export const Findings = ({ agentId, mayChange }: Props) => {
  const t = useText(words)
  const labels = useText(findingWords)
  const { number } = useFormat()
  const queries = useQueryClient()
  const reason = useReason()
  const [kind, setKind] = useState<FindingKind | undefined>(undefined)
  const [isDismissed, setDismissed] = useState(false)
  const query = useInfiniteQuery(findings(agentId, kind, isDismissed))
  const list = useRef<HTMLElement>(null)
  const changeDismissal = useMutation({
    mutationFn: ({ dismissed, id }: { readonly id: string; readonly dismissed: boolean }) =>
      dismissed ? dismissFinding(agentId, id) : restoreFinding(agentId, id),
    onSuccess: async (_, { dismissed, id }) => {
      toast(dismissed ? t.isDismissed : t.isRestored, () =>
        changeDismissal.mutate({ id, dismissed: !dismissed })
      )
      await queries.invalidateQueries({ queryKey: ["agents", agentId, "findings"] })
      // The finding was removed with its focused button, so the list gets the focus.
      if (document.activeElement === document.body) list.current?.focus({ preventScroll: true })
    },
    onError: (problem) => toast(reason(problem).sentence)
  })
  const counts = query.data?.pages[0]?.counts
  const kinds = [
    [
      undefined,
      labels.all,
      counts === undefined ? 0 : counts.contradiction + counts.duplicate + counts.stale
    ],
    ["contradiction", labels.contradictions, counts?.contradiction ?? 0],
    ["duplicate", labels.duplicates, counts?.duplicate ?? 0],
    ["stale", labels.stales, counts?.stale ?? 0]
  ] as const
  return (
    <section ref={list} tabIndex={-1} aria-label={t.findings} className={css["list"]}>
      <h2 className="visually-hidden">{t.findings}</h2>
      <div className={css["bar"]}>
        <div role="group" aria-label={t.kind} className={css["chips"]}>
          {kinds.map(([value, title, count]) => (
            <button
              key={value ?? "all"}
              type="button"
              className={css["chip"]}
              aria-pressed={kind === value}
              onClick={() => setKind(value)}
            >
              {title(number(count))}
            </button>
          ))}
        </div>
        <Switch label={t.dismissed} isSelected={isDismissed} onChange={setDismissed} />
      </div>
      <Loaded query={query}>
        {({ pages }) => {
          const findingList = pages.flatMap((page) => page.findings)
          const isComplete = pages[0]?.isComplete !== false
          return (
            <>
              {isComplete ? null : <p role="status">{t.comparing}</p>}
              {findingList.length > 0 ? (
                <ul className={css["list"]}>
                  {findingList.map((finding) => (
                    <FindingCard
                      key={finding.id}
                      finding={finding}
                      mayChange={mayChange}
                      busy={changeDismissal.isPending && changeDismissal.variables.id === finding.id}
                      onClick={() =>
                        changeDismissal.mutate({ id: finding.id, dismissed: finding.dismissedAt === null })
                      }
                    />
                  ))}
                </ul>
              ) : isDismissed ? (
                <Empty title={t.noneDismissed} lead={t.noneDismissedLead} />
              ) : isComplete ? (
                <Empty
                  title={t.empty}
                  lead={t.emptyLead}
                  action={<Link href={`/agents/${agentId}/sources`}>{t.toSources}</Link>}
                />
              ) : null}
            </>
          )
        }}
      </Loaded>
      <LoadMore query={query} />
    </section>
  )
}
