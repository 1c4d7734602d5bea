/** Fields of a crawl, with the preview of the pages they select. */
import type { ReactNode } from "react"
import type { DryRunRequest } from "../../../../domain/knowledge/Crawl.ts"
import type { SourceConfig } from "../../api/Sources.ts"
import { Select, TextArea, TextField } from "../../components/Field.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { addressOf } from "./addressOf.ts"
import { CrawlPreview } from "./CrawlPreview.tsx"
import { RefreshField, type RefreshInterval } from "./RefreshField.tsx"
import { linesOf } from "../../forms/lines.ts"

const words = texts(
  {
    url: "Address",
    depth: "How far to follow links",
    depth0: "This page alone",
    depthN: (links: number) => (links === 1 ? "1 link away" : `${links} links away`),
    include: "Only addresses like",
    exclude: "Never addresses like",
    patterns: "One pattern a line, on the whole address: https://example.com/docs/**. Exclusion wins."
  },
  {
    url: "Adresse",
    depth: "Wie weit Links gefolgt wird",
    depth0: "Nur diese Seite",
    depthN: (links: number) => (links === 1 ? "1 Link weit" : `${links} Links weit`),
    include: "Nur Adressen wie",
    exclude: "Nie Adressen wie",
    patterns: "Je Zeile ein Muster für die ganze Adresse: https://example.com/docs/**. Ausschluss gewinnt."
  }
)

/** Values of the fields, as typed. */
export interface CrawlForm {
  readonly [field: string]: unknown
  readonly url: string
  readonly depth: string
  readonly include: string
  readonly exclude: string
  readonly refresh: RefreshInterval
}

export const emptyCrawl: CrawlForm = { url: "", depth: "0", include: "", exclude: "", refresh: "off" }

export const crawlFormOf = (config: SourceConfig): CrawlForm => ({
  url: config.url ?? config.sitemapUrl ?? "",
  depth: String(config.maxDepth ?? 0),
  include: (config.includePatterns ?? []).join("\n"),
  exclude: (config.excludePatterns ?? []).join("\n"),
  refresh: config.refresh ?? "off"
})

const fieldNames = ["url", "sitemapUrl", "maxDepth", "includePatterns", "excludePatterns", "refresh"]

/** The part of a config that the form does not show, for example metadata. Saving keeps it. */
export const otherConfigOf = (config: SourceConfig): object =>
  Object.fromEntries(Object.entries(config).filter(([name]) => !fieldNames.includes(name)))

/** The source's type and config from the form. */
export const crawlOf = (type: "URL" | "SITEMAP", form: CrawlForm): typeof DryRunRequest.Encoded => {
  const config = {
    ...(linesOf(form.include).length === 0 ? {} : { includePatterns: linesOf(form.include) }),
    ...(linesOf(form.exclude).length === 0 ? {} : { excludePatterns: linesOf(form.exclude) }),
    ...(form.refresh === "off" ? {} : { refresh: form.refresh })
  }
  const address = addressOf(form.url)
  return type === "URL"
    ? { type, config: { ...config, url: address, maxDepth: Number(form.depth) } }
    : { type, config: { ...config, sitemapUrl: address } }
}

/** Paths of the validation issues that the fields show. */
export const crawlPaths = [
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
  readonly errorOf: (path: (typeof crawlPaths)[number]) => string | undefined
  /** Shows the stored value of a field that another session has changed. */
  readonly conflictOf?: (field: "url" | "depth" | "include" | "exclude" | "refresh") => ReactNode
  /** Wraps the fields that most people leave unchanged, for example in a collapsed section. */
  readonly wrapOptional?: (fields: ReactNode) => ReactNode
}

const unwrapped = (fields: ReactNode) => fields

export const CrawlFields = ({
  conflictOf = () => null,
  errorOf,
  form,
  onChange,
  wrapOptional = unwrapped,
  type
}: Props) => {
  const t = useText(words)
  const patterns = (
    <>
      <TextArea
        label={t.include}
        help={t.patterns}
        guide="sources#patterns"
        rows={2}
        mono
        value={form.include}
        onChange={(include) => onChange({ include })}
        error={errorOf("config.includePatterns")}
      />
      {conflictOf("include")}
      <TextArea
        label={t.exclude}
        rows={2}
        mono
        value={form.exclude}
        onChange={(exclude) => onChange({ exclude })}
        error={errorOf("config.excludePatterns")}
      />
      {conflictOf("exclude")}
      <RefreshField value={form.refresh} onChange={(refresh) => onChange({ refresh })} />
      {conflictOf("refresh")}
    </>
  )
  return (
    <>
      <TextField
        label={t.url}
        inputMode="url"
        spellCheck="false"
        required
        placeholder={type === "URL" ? "https://example.com/" : "https://example.com/sitemap.xml"}
        value={form.url}
        onChange={(url) => onChange({ url })}
        error={errorOf(type === "URL" ? "config.url" : "config.sitemapUrl")}
      />
      {conflictOf("url")}
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
      {conflictOf("depth")}
      {wrapOptional(patterns)}
      <CrawlPreview request={crawlOf(type, form)} disabled={form.url === ""} />
    </>
  )
}
