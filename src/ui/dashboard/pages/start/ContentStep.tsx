/** Step one: the customer's homepage, and the pages to read. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { lazy, Suspense, useRef, useState } from "react"
import { createAgent } from "../../api/Agents.ts"
import { createSource, dryRun } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Form } from "../../forms/Form.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { addressOf } from "../sources/addressOf.ts"
import css from "./Start.module.css"

const words = texts(
  {
    address: "Homepage",
    find: "Find pages",
    finding: "Looking at the website. This takes up to half a minute …",
    found: (count: number) => (count === 1 ? "One page was found." : `${count} pages were found.`),
    more: (count: number) => `More than ${count} pages were found. All of them are read, up to 1,000.`,
    none: "No page could be read there. Check the address, or upload files instead.",
    pages: "Pages that are read",
    read: (count: number) => (count === 1 ? "Read this page" : `Read these ${count} pages`),
    readAll: "Read all pages",
    other: "Another address",
    upload: "Upload a file",
    text: "Write or paste text",
    agent: "My agent"
  },
  {
    address: "Homepage",
    find: "Seiten finden",
    finding: "Die Website wird angesehen. Das dauert bis zu einer halben Minute …",
    found: (count: number) =>
      count === 1 ? "Eine Seite wurde gefunden." : `${count} Seiten wurden gefunden.`,
    more: (count: number) =>
      `Mehr als ${count} Seiten wurden gefunden. Alle werden gelesen, höchstens 1.000.`,
    none: "Dort ließ sich keine Seite lesen. Bitte die Adresse prüfen oder Dateien hochladen.",
    pages: "Seiten, die gelesen werden",
    read: (count: number) => (count === 1 ? "Diese Seite lesen" : `Diese ${count} Seiten lesen`),
    readAll: "Alle Seiten lesen",
    other: "Andere Adresse",
    upload: "Datei hochladen",
    text: "Text schreiben oder einfügen",
    agent: "Mein Agent"
  }
)

// This is the first page, so code that it may not need is loaded lazily.
const AddSource = lazy(() =>
  import("../sources/AddSource.tsx").then((module) => ({ default: module.AddSource }))
)
const ReadingError = lazy(() =>
  import("../sources/ReadingError.tsx").then((module) => ({ default: module.ReadingError }))
)

/** Maximum number of links from the homepage to a page. */
const maxDepth = 3

/** Two sources for a website: one follows its links, the other reads its sitemap. */
const sourcesOf = (url: string) =>
  [
    { type: "URL", config: { url, maxDepth } },
    { type: "SITEMAP", config: { sitemapUrl: new URL("/sitemap.xml", url).href } }
  ] as const

/** Previews both sources of a website, and chooses the one that finds more pages. */
const findPages = async (typed: string) => {
  const url = addressOf(typed)
  const [byLinks, bySitemap] = sourcesOf(URL.canParse(url) ? url : "https://invalid.invalid")
  const [links, sitemap] = await Promise.all([
    dryRun({ ...byLinks, config: { ...byLinks.config, url } }),
    dryRun(bySitemap).catch(() => null)
  ])
  const pagesOf = (preview: typeof links | null) =>
    (preview?.urls ?? []).filter(({ included }) => included).map((line) => line.url)
  const [linkedPages, sitemapPages] = [pagesOf(links), pagesOf(sitemap)]
  return sitemapPages.length > linkedPages.length
    ? { url, source: bySitemap, pages: sitemapPages, isComplete: sitemap?.complete ?? true, error: null }
    : { url, source: byLinks, pages: linkedPages, isComplete: links.complete, error: links.error }
}

interface Props {
  /** Null if the agent is created with its first source. */
  readonly agentId: string | null
  readonly onAdded: (agentId: string) => void
}

export const ContentStep = ({ agentId, onAdded }: Props) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [address, setAddress] = useState("")
  const [openForm, setOpenForm] = useState<{
    readonly agentId: string
    readonly kind: "upload" | "TEXT"
  } | null>(null)
  const find = useMutation({ mutationFn: () => findPages(address) })

  /** The id of the agent that was created here. A second attempt uses the same agent. */
  const createdId = useRef<string | null>(null)
  const existingOrNewAgent = async (name: string) => {
    const existing = agentId ?? createdId.current
    if (existing !== null) return existing
    const { agent } = await createAgent(name, "")
    createdId.current = agent.id
    await queries.invalidateQueries({ queryKey: ["agents"], exact: true })
    return agent.id
  }
  const read = useMutation({
    mutationFn: async ({ url, source }: Awaited<ReturnType<typeof findPages>>) => {
      const { host } = new URL(url)
      const id = await existingOrNewAgent(host)
      await createSource({ ...source, agentId: id, name: host })
      return id
    },
    onSuccess: onAdded
  })
  const open = useMutation({
    mutationFn: async (kind: "upload" | "TEXT") => ({ agentId: await existingOrNewAgent(t.agent), kind }),
    onSuccess: setOpenForm
  })
  const { data: result } = find
  const problem = find.error ?? read.error ?? open.error
  return (
    <>
      {problem === null ? null : <Problem problem={problem} />}
      {result === undefined || result.pages.length === 0 ? (
        <Form onSubmit={() => find.mutate()}>
          <TextField
            label={t.address}
            inputMode="url"
            spellCheck="false"
            placeholder="www.example.com"
            required
            value={address}
            onChange={setAddress}
          />
          <div className={css["row"]}>
            <Button kind="primary" type="submit" busy={find.isPending}>
              {t.find}
            </Button>
            <Button kind="quiet" busy={open.isPending} onClick={() => open.mutate("upload")}>
              {t.upload}
            </Button>
            <Button kind="quiet" busy={open.isPending} onClick={() => open.mutate("TEXT")}>
              {t.text}
            </Button>
          </div>
        </Form>
      ) : null}
      <div role="status">
        {find.isPending ? <p className={css["soft"]}>{t.finding}</p> : null}
        {result === undefined || find.isPending ? null : result.pages.length > 0 ? (
          <p>{result.isComplete ? t.found(result.pages.length) : t.more(result.pages.length)}</p>
        ) : (
          <p className={css["error"]}>
            {result.error === null ? (
              t.none
            ) : (
              <Suspense>
                <ReadingError error={result.error} />
              </Suspense>
            )}
          </p>
        )}
      </div>
      {result === undefined || result.pages.length === 0 ? null : (
        <>
          <ul className={css["pages"]} tabIndex={0} aria-label={t.pages}>
            {result.pages.map((url) => (
              <li key={url}>{url}</li>
            ))}
          </ul>
          <div className={css["row"]}>
            <Button kind="primary" busy={read.isPending} onClick={() => read.mutate(result)}>
              {result.isComplete ? t.read(result.pages.length) : t.readAll}
            </Button>
            <Button kind="quiet" onClick={() => find.reset()}>
              {t.other}
            </Button>
          </div>
        </>
      )}
      {openForm === null ? null : (
        <Suspense>
          <AddSource
            agentId={openForm.agentId}
            kind={openForm.kind}
            isOpen
            onClose={() => {
              setOpenForm(null)
              onAdded(openForm.agentId)
            }}
          />
        </Suspense>
      )}
    </>
  )
}
