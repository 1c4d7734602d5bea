/** Fields of a crawl, and the trial run that shows the pages they select. */
import { useMutation } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { DryRunRequest } from "../../../../domain/knowledge/Crawl.ts"
import { dryRun, type SourceConfig } from "../../api/Sources.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { LongText, Select, TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { addressOf } from "./addressOf.ts"
import css from "./Crawling.module.css"
import { Refresh, type Refreshing } from "./Refresh.tsx"
import { Reason, Why } from "./Why.tsx"

const words = texts(
  {
    url: "Address",
    depth: "How far to follow links",
    depth0: "This page alone",
    depthN: (links: number) => (links === 1 ? "1 link away" : `${links} links away`),
    include: "Only addresses like",
    exclude: "Never addresses like",
    patterns: "One pattern a line, on the whole address: https://example.com/docs/**. Exclusion wins.",
    trial: "Preview",
    trialHelp: "Fetches some pages and keeps nothing.",
    taken: "Taken",
    left: "Left out",
    partial: "More addresses exist than were tried."
  },
  {
    url: "Adresse",
    depth: "Wie weit Links gefolgt wird",
    depth0: "Nur diese Seite",
    depthN: (links: number) => (links === 1 ? "1 Link weit" : `${links} Links weit`),
    include: "Nur Adressen wie",
    exclude: "Nie Adressen wie",
    patterns: "Je Zeile ein Muster für die ganze Adresse: https://example.com/docs/**. Ausschluss gewinnt.",
    trial: "Vorschau",
    trialHelp: "Ruft einige Seiten ab und behält nichts.",
    taken: "Dabei",
    left: "Ausgelassen",
    partial: "Es gibt mehr Adressen, als ausprobiert wurden."
  }
)

const lines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")

/** Values of the fields, as typed. */
export interface CrawlForm {
  readonly [field: string]: unknown
  readonly url: string
  readonly depth: string
  readonly include: string
  readonly exclude: string
  readonly refresh: Refreshing
}

export const emptyCrawl: CrawlForm = { url: "", depth: "0", include: "", exclude: "", refresh: "off" }

export const crawlFormOf = (config: SourceConfig): CrawlForm => ({
  url: config.url ?? config.sitemapUrl ?? "",
  depth: String(config.maxDepth ?? 0),
  include: (config.includePatterns ?? []).join("\n"),
  exclude: (config.excludePatterns ?? []).join("\n"),
  refresh: config.refresh ?? "off"
})

/** The source's type and config from the form. */
export const crawlOf = (type: "URL" | "SITEMAP", form: CrawlForm): typeof DryRunRequest.Encoded => {
  const config = {
    ...(lines(form.include).length === 0 ? {} : { includePatterns: lines(form.include) }),
    ...(lines(form.exclude).length === 0 ? {} : { excludePatterns: lines(form.exclude) }),
    ...(form.refresh === "off" ? {} : { refresh: form.refresh })
  }
  const address = addressOf(form.url)
  return type === "URL"
    ? { type, config: { ...config, url: address, maxDepth: Number(form.depth) } }
    : { type, config: { ...config, sitemapUrl: address } }
}

/** Paths of validation issues that have a field. */
export const crawlPlaces = [
  "config.url",
  "config.sitemapUrl",
  "config.maxDepth",
  "config.includePatterns",
  "config.excludePatterns"
] as const

interface Props {
  readonly type: "URL" | "SITEMAP"
  readonly form: CrawlForm
  readonly onChange: (form: Partial<CrawlForm>) => void
  readonly errorOf: (place: (typeof crawlPlaces)[number]) => string | undefined
  /** The error below a field, by the field's path. */
  readonly below?: (field: "url" | "depth" | "include" | "exclude" | "refresh") => ReactNode
}

const Trial = ({ type, form }: Pick<Props, "type" | "form">) => {
  const t = useText(words)
  const trial = useMutation({ mutationFn: () => dryRun(crawlOf(type, form)) })
  return (
    <div className={css["trial"]}>
      <Button busy={trial.isPending} isDisabled={form.url === ""} onPress={() => trial.mutate()}>
        {t.trial}
      </Button>
      <span className={css["help"]}>{t.trialHelp}</span>
      {trial.error === null ? null : <Problem problem={trial.error} />}
      <div role="status" className={css["result"]}>
        {trial.data === undefined ? null : (
          <>
            {trial.data.error === null ? null : (
              <p className={css["error"]}>
                <Why error={trial.data.error} />
              </p>
            )}
            <ul className={css["lines"]}>
              {trial.data.urls.map(({ url, included, message, reason }) => (
                <li key={url}>
                  <Badge tone={included ? "good" : "warn"}>{included ? t.taken : t.left}</Badge>
                  <span className={css["url"]}>
                    {url}
                    {message === null ? null : (
                      <span className={css["help"]}>
                        {" "}
                        <Reason code={reason} message={message} />
                      </span>
                    )}
                  </span>
                </li>
              ))}
            </ul>
            {trial.data.complete ? null : <p className={css["help"]}>{t.partial}</p>}
          </>
        )}
      </div>
    </div>
  )
}

export const CrawlFields = ({ below = () => null, errorOf, form, onChange, type }: Props) => {
  const t = useText(words)
  return (
    <>
      <TextField
        label={t.url}
        inputMode="url"
        spellCheck="false"
        isRequired
        placeholder={type === "URL" ? "https://example.com/" : "https://example.com/sitemap.xml"}
        value={form.url}
        onChange={(url) => onChange({ url })}
        error={errorOf(type === "URL" ? "config.url" : "config.sitemapUrl")}
      />
      {below("url")}
      {type === "URL" ? (
        <Select
          label={t.depth}
          options={["0", "1", "2", "3", "4", "5"].map(
            (depth) => [depth, depth === "0" ? t.depth0 : t.depthN(Number(depth))] as const
          )}
          value={form.depth}
          onChange={(depth) => onChange({ depth })}
        />
      ) : null}
      {below("depth")}
      <LongText
        label={t.include}
        help={t.patterns}
        rows={2}
        mono
        value={form.include}
        onChange={(include) => onChange({ include })}
        error={errorOf("config.includePatterns")}
      />
      {below("include")}
      <LongText
        label={t.exclude}
        rows={2}
        mono
        value={form.exclude}
        onChange={(exclude) => onChange({ exclude })}
        error={errorOf("config.excludePatterns")}
      />
      {below("exclude")}
      <Refresh value={form.refresh} onChange={(refresh) => onChange({ refresh })} />
      {below("refresh")}
      <Trial type={type} form={form} />
    </>
  )
}
