/** One source: its state, its config, and the outcome of every address. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useLocation } from "wouter"
import { isOutdated } from "../../api/Client.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { documents } from "../../api/sources/Contents.ts"
import {
  crawl,
  deleteSource,
  isUntouched,
  patchSource,
  source,
  type SourceDetail,
  syncSource
} from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { Actions, Dialog } from "../../components/Dialog.tsx"
import { TextField } from "../../components/Field.tsx"
import { Menu } from "../../components/Menu.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Conflict, DraftState, Theirs } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { requireUnchanged } from "../../forms/requireUnchanged.ts"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { LoadedPage } from "../LoadedPage.tsx"
import { crawlOf, CrawlFields, crawlFormOf, crawlPlaces, otherThanCrawl } from "./CrawlFields.tsx"
import { CuratedFields, curatedFormOf, curatedOf, curatedPlaces, isCurated } from "./CuratedFields.tsx"
import { CrawlReport } from "./CrawlReport.tsx"
import { Labels, labelsOf, typedLabels } from "./LabelsField.tsx"
import css from "./Source.module.css"
import {
  readerConfigOf,
  ReaderFields,
  readerFormOf,
  readerPlaces,
  useReaders,
  useSaid
} from "./ReaderFields.tsx"
import { State } from "./SourceState.tsx"
import { Documents } from "./contents/Documents.tsx"
import { Why } from "./ReadingError.tsx"
import { words as shared } from "./words.ts"

const words = texts(
  {
    all: "All sources",
    sync: "Sync",
    first: "Sync now",
    force: "Re-sync everything",
    edit: "Edit source",
    editHelp: "Changed addresses and patterns act at the next sync.",
    curatedHelp: "It is synced as soon as it is saved.",
    labels: "Labels",
    labelsHelp:
      "Separated by commas; act at once. With one, only keys that have it may read the source; without, every key.",
    remove: "Delete source",
    question: (name: string) =>
      `“${name}” and everything that was read from it will be gone, and is never found again.`,
    state: "State",
    made: "Made from",
    address: "Address",
    fileName: "File",
    depth: "Links followed",
    include: "Only",
    exclude: "Never",
    refresh: "Automatic sync",
    daily: "Every day",
    weekly: "Every week",
    off: "Off",
    id: "Id"
  },
  {
    all: "Alle Quellen",
    sync: "Synchronisieren",
    first: "Jetzt synchronisieren",
    force: "Alles neu synchronisieren",
    edit: "Quelle bearbeiten",
    editHelp: "Geänderte Adressen und Muster gelten bei der nächsten Synchronisierung.",
    curatedHelp: "Sie wird synchronisiert, sobald sie gespeichert ist.",
    labels: "Etiketten",
    labelsHelp:
      "Durch Kommas getrennt; gelten sofort. Mit einem lesen die Quelle nur Schlüssel, die es haben, ohne eines alle.",
    remove: "Quelle löschen",
    question: (name: string) =>
      `„${name}“ und alles daraus Gelesene ist dann fort und wird nie wieder gefunden.`,
    state: "Stand",
    made: "Woraus",
    address: "Adresse",
    fileName: "Datei",
    depth: "Links gefolgt",
    include: "Nur",
    exclude: "Nie",
    refresh: "Automatische Synchronisierung",
    daily: "Täglich",
    weekly: "Wöchentlich",
    off: "Aus",
    id: "Id"
  }
)

/** Values of the fields, as typed. */
const fieldsOf = ({ config, labels = [], name }: SourceDetail) => ({
  name,
  labels: typedLabels(labels),
  address: config.fileUrl ?? "",
  ...crawlFormOf(config),
  ...curatedFormOf(config),
  ...readerFormOf(config)
})

const places = ["name", "labels", "config.fileUrl", ...crawlPlaces, ...curatedPlaces] as const

/** A change of a source is written as it is shown, but for pairs and the settings of a reader. */
const shownValue = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

const Edit = ({ found, onClose }: { readonly found: SourceDetail; readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const { type } = found
  const draft = useDraft({
    name: `source.${found.id}`,
    title: `${t.edit}: ${found.name}`,
    stored: fieldsOf(found),
    unkept: ["secrets"]
  })
  const { change, value } = draft
  const reader = useReaders().find(({ name }) => name === found.config.reader)
  const crawled = type === "URL" || type === "SITEMAP"
  const save = useMutation({
    mutationFn: async () => {
      const newest = await queries.fetchQuery({ ...source(found.id), staleTime: 0 })
      requireUnchanged(fieldsOf(found), fieldsOf(newest))
      const { address, name } = value
      const labels = labelsOf(value.labels)
      if (crawled) {
        const config = { ...otherThanCrawl(found.config), ...crawlOf(type, value).config }
        return patchSource(found.id, { name, labels, config })
      }
      if (type === "CONNECTOR") {
        const config =
          reader === undefined ? {} : { config: { ...found.config, ...readerConfigOf(reader, value) } }
        return patchSource(found.id, { name, labels, ...config })
      }
      if (isCurated(type)) {
        const config = { ...found.config, ...curatedOf(type, value).config }
        return patchSource(found.id, { name, labels, config })
      }
      const { fileUrl, ...rest } = found.config
      return patchSource(
        found.id,
        fileUrl === undefined || fileUrl === address
          ? { name, labels }
          : { name, labels, config: { ...rest, fileUrl: address } }
      )
    },
    onSuccess: async () => {
      draft.saved()
      await queries.invalidateQueries({ queryKey: ["sources"] })
      onClose()
    }
  })
  const { errorOf, general } = useIssues<string>(save.error, [...places, ...readerPlaces(reader)])
  return (
    <Form onSubmit={() => save.mutate()} problem={isOutdated(general) ? null : general}>
      <Conflict draft={draft} problem={save.error} />
      <TextField
        label={common.name}
        required
        autoFocus
        value={value.name}
        onChange={(name) => change({ name })}
        error={errorOf("name")}
      />
      <Theirs draft={draft} name="name" />
      {crawled ? (
        <CrawlFields
          type={type}
          form={value}
          onChange={change}
          errorOf={errorOf}
          below={(field) => <Theirs draft={draft} name={field} />}
        />
      ) : null}
      {found.config.fileUrl === undefined ? null : (
        <>
          <TextField
            label={t.address}
            type="url"
            required
            value={value.address}
            onChange={(address) => change({ address })}
            error={errorOf("config.fileUrl")}
          />
          <Theirs draft={draft} name="address" />
        </>
      )}
      {reader === undefined ? null : (
        <ReaderFields
          reader={reader}
          form={value}
          onChange={change}
          errorOf={errorOf}
          below={(field) => <Theirs draft={draft} name={field} shown={shownValue} />}
          isStored
        />
      )}
      {isCurated(type) ? (
        <CuratedFields
          type={type}
          form={value}
          onChange={change}
          errorOf={errorOf}
          below={(field) => <Theirs draft={draft} name={field} shown={shownValue} />}
        />
      ) : null}
      <Labels
        help={t.labelsHelp}
        value={value.labels}
        onChange={(labels) => change({ labels })}
        error={errorOf("labels")}
      />
      <Theirs draft={draft} name="labels" />
      <p className={css["soft"]}>{isCurated(type) ? t.curatedHelp : t.editHelp}</p>
      <Actions>
        <DraftState draft={draft} />
        <Button onClick={onClose}>{common.cancel}</Button>
        <Button kind="primary" type="submit" busy={save.isPending}>
          {common.save}
        </Button>
      </Actions>
    </Form>
  )
}

const Facts = ({ found }: { readonly found: SourceDetail }) => {
  const t = useText(words)
  const names = useText(shared)
  const { config, labels = [] } = found
  const { settings } = readerFormOf(config)
  const said = useSaid()
  const reader = useReaders().find(({ name }) => name === config.reader)
  const address = config.url ?? config.sitemapUrl ?? config.fileUrl
  const facts: ReadonlyArray<readonly [string, string | undefined]> = [
    [names.type, reader === undefined ? names[found.type] : said(reader.title)],
    [t.address, address],
    [t.fileName, config.fileName],
    [t.depth, config.maxDepth === undefined ? undefined : String(config.maxDepth)],
    [t.include, config.includePatterns?.join("\n")],
    [t.exclude, config.excludePatterns?.join("\n")],
    ...(reader?.fields ?? []).map(
      ({ label, name }) => [said(label), settings[name] === "" ? undefined : settings[name]] as const
    ),
    [t.refresh, address === undefined && reader === undefined ? undefined : t[config.refresh ?? "off"]],
    [t.labels, labels.length === 0 ? undefined : typedLabels(labels)],
    [t.id, found.id]
  ]
  return (
    <dl className={css["facts"]}>
      {facts.map(([term, text]) =>
        text === undefined ? null : (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{text}</dd>
          </div>
        )
      )}
    </dl>
  )
}

const Buttons = ({ found }: { readonly found: SourceDetail }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const [editing, setEditing] = useState(false)
  const sync = useMutation({
    mutationFn: (force: boolean) => syncSource(found.id, force),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["sources"] })
  })
  return (
    <>
      {sync.error === null ? null : <Problem problem={sync.error} />}
      <Dialog title={t.edit} isOpen={editing} onClose={() => setEditing(false)} wide>
        <Edit found={found} onClose={() => setEditing(false)} />
      </Dialog>
      <Menu
        actions={[
          ...(isUntouched(found) ? [] : [{ label: t.force, does: () => sync.mutate(true) }]),
          {
            label: t.remove,
            does: {
              title: t.remove,
              question: t.question(found.name),
              action: t.remove,
              onConfirm: async () => {
                await deleteSource(found.id)
                // By now another page may be open.
                if (window.location.pathname.includes(found.id)) navigate(`/sources?agent=${found.agentId}`)
                await queries.invalidateQueries({ queryKey: ["sources", "of"] })
              }
            }
          }
        ]}
      />
      <Button onClick={() => setEditing(true)}>{common.edit}</Button>
      <Button kind="primary" busy={sync.isPending} onClick={() => sync.mutate(false)}>
        {isUntouched(found) ? t.first : t.sync}
      </Button>
    </>
  )
}

const Content = ({ found }: { readonly found: SourceDetail }) => {
  const t = useText(words)
  const synced = `${found.latestJob?.id} ${found.latestJob?.status}`
  const known = useInfiniteQuery(documents(found.id, "", synced))
  const report = useInfiniteQuery(crawl(found.id, "all", synced))
  return (
    <>
      <Documents found={found} />
      {/* Not before what is above, whose height is not known: they would move. */}
      {known.isPending || report.isPending ? null : (
        <>
          <CrawlReport found={found} />
          <Section title={t.made}>
            <Facts found={found} />
          </Section>
        </>
      )}
    </>
  )
}

const Source = ({ id, user }: { readonly id: string; readonly user: User }) => {
  const t = useText(words)
  const names = useText(shared)
  const query = useQuery(source(id))
  return (
    <LoadedPage query={query}>
      {(found) => (
        <Page
          title={found.name}
          parent={[`/sources?agent=${found.agentId}`, t.all]}
          lead={
            <span className={css["state"]}>
              <State source={found} />
              {found.latestJob?.chunksCreated === null || found.latestJob === null ? null : (
                <span>{names.passages(found.latestJob.chunksCreated)}</span>
              )}
            </span>
          }
          actions={atLeast(user.role, "admin") ? <Buttons found={found} /> : undefined}
        >
          {found.error === null ? null : (
            <div role="alert" className={css["error"]}>
              <Why error={found.error} />
            </div>
          )}
          <Content found={found} />
        </Page>
      )}
    </LoadedPage>
  )
}

export default Source
