/** The preview of a crawl: pages that a sync would read, and would not read, with reasons. Nothing is stored. */
import { useMutation } from "@tanstack/react-query"
import type { DryRunLine, DryRunRequest } from "../../../../domain/knowledge/Crawl.ts"
import { dryRun } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { Problem } from "../../components/Problem.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./CrawlPreview.module.css"
import { ReadingReason, ReadingError } from "./ReadingError.tsx"

const words = texts(
  {
    preview: "Preview",
    help: "Looks at up to 50 pages and keeps nothing.",
    changed: "The settings have changed since. Preview again to see what they do.",
    read: (count: string) => (count === "1" ? "1 page would be read" : `${count} pages would be read`),
    unread: (count: string) =>
      count === "1" ? "1 page would not be read" : `${count} pages would not be read`,
    none: "No page would be read.",
    start: "The address itself",
    links: (count: number) => (count === 1 ? "1 link away" : `${count} links away`),
    partial: "The preview stops here. A sync reads on."
  },
  {
    preview: "Vorschau",
    help: "Sieht sich bis zu 50 Seiten an und behält nichts.",
    changed: "Die Angaben sind seitdem geändert. Was sie bewirken, zeigt eine neue Vorschau.",
    read: (count: string) => (count === "1" ? "1 Seite würde gelesen" : `${count} Seiten würden gelesen`),
    unread: (count: string) =>
      count === "1" ? "1 Seite würde nicht gelesen" : `${count} Seiten würden nicht gelesen`,
    none: "Keine Seite würde gelesen.",
    start: "Die Adresse selbst",
    links: (count: number) => (count === 1 ? "1 Link entfernt" : `${count} Links entfernt`),
    partial: "Hier endet die Vorschau. Eine Synchronisierung liest weiter."
  }
)

type Line = typeof DryRunLine.Encoded

const LineDetails = ({ line: { depth, included, message, pattern, reason } }: { readonly line: Line }) => {
  const t = useText(words)
  if (included) return depth === null ? null : <>{depth === 0 ? t.start : t.links(depth)}</>
  return (
    <>
      {message === null ? null : <ReadingReason code={reason} message={message} />}
      {pattern === null ? null : (
        <>
          {" "}
          <code>{pattern}</code>
        </>
      )}
    </>
  )
}

const PageList = ({ lines, title }: { readonly lines: ReadonlyArray<Line>; readonly title: string }) => (
  <section aria-label={title}>
    <h3 className={css["title"]}>{title}</h3>
    <ul className={css["lines"]} aria-label={title} tabIndex={0}>
      {lines.map((line) => (
        <li key={line.url}>
          <span className={css["url"]}>{line.url}</span>
          <span className={css["help"]}>
            <LineDetails line={line} />
          </span>
        </li>
      ))}
    </ul>
  </section>
)

interface Props {
  /** The source as it would be saved. */
  readonly request: typeof DryRunRequest.Encoded
  readonly disabled: boolean
}

export const CrawlPreview = ({ disabled, request }: Props) => {
  const t = useText(words)
  const { number } = useFormat()
  const preview = useMutation({ mutationFn: (sent: typeof DryRunRequest.Encoded) => dryRun(sent) })
  const isOutdated =
    preview.variables !== undefined && JSON.stringify(preview.variables) !== JSON.stringify(request)
  const read = preview.data?.urls.filter(({ included }) => included) ?? []
  const unread = preview.data?.urls.filter(({ included }) => !included) ?? []
  return (
    <div className={css["preview"]}>
      <Button busy={preview.isPending} disabled={disabled} onClick={() => preview.mutate(request)}>
        {t.preview}
      </Button>
      <span className={css["help"]}>{t.help}</span>
      {preview.error === null ? null : <Problem problem={preview.error} />}
      <div role="status" className={css["result"]}>
        {preview.data === undefined ? null : (
          <>
            {isOutdated ? <p className={css["changed"]}>{t.changed}</p> : null}
            {preview.data.error === null ? null : (
              <p className={css["error"]}>
                <ReadingError error={preview.data.error} />
              </p>
            )}
            {read.length > 0 ? (
              <PageList title={t.read(number(read.length))} lines={read} />
            ) : preview.data.error === null ? (
              <p>{t.none}</p>
            ) : null}
            {unread.length > 0 ? <PageList title={t.unread(number(unread.length))} lines={unread} /> : null}
            {preview.data.complete ? null : <p className={css["help"]}>{t.partial}</p>}
          </>
        )}
      </div>
    </div>
  )
}
