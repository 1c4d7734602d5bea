/** One source: its state, its config, and the outcome of every address. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { useLocation } from "wouter"
import { atLeast, type User } from "../../api/Session.ts"
import { documents } from "../../api/sources/Contents.ts"
import {
  crawl,
  deleteSource,
  isNeverRead,
  patchSource,
  source as sourceQuery,
  type SourceDetail,
  syncSource
} from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { CopyableId } from "../../components/CopyableId.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { TextField } from "../../components/Field.tsx"
import { Menu } from "../../components/Menu.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { ConflictingValue } from "../../forms/DraftNotes.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { requireUnchanged } from "../../forms/requireUnchanged.ts"
import { useDraft } from "../../forms/useDraft.ts"
import { useSaveAndClose } from "../../forms/useSaveAndClose.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import { LoadedPage } from "../LoadedPage.tsx"
import { crawlOf, CrawlFields, crawlFormOf, crawlPaths, otherConfigOf } from "./CrawlFields.tsx"
import { CuratedFields, curatedFormOf, curatedOf, curatedPaths, isCurated } from "./CuratedFields.tsx"
import { CrawlReport } from "./CrawlReport.tsx"
import { LabelsField, parseLabels, formatLabels } from "./LabelsField.tsx"
import css from "./Source.module.css"
import {
  readerConfigOf,
  ReaderFields,
  readerFormOf,
  readerPaths,
  useReaders,
  useReaderText
} from "./ReaderFields.tsx"
import { SourceState } from "./SourceState.tsx"
import { Documents } from "./contents/Documents.tsx"
import { ReadingError } from "./ReadingError.tsx"
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
    id: "ID"
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
    id: "ID"
  }
)

/** Values of the fields, as typed. */
const fieldsOf = ({ config, labels = [], name }: SourceDetail) => ({
  name,
  labels: formatLabels(labels),
  address: config.fileUrl ?? "",
  ...crawlFormOf(config),
  ...curatedFormOf(config),
  ...readerFormOf(config)
})

const fieldPaths = ["name", "labels", "config.fileUrl", ...crawlPaths, ...curatedPaths] as const

/** Text is shown as it is; pairs and the settings of a reader as JSON. */
const formatValue = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

const EditSource = ({ source, onClose }: { readonly source: SourceDetail; readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const { type } = source
  const draft = useDraft({
    name: `source.${source.id}`,
    title: `${t.edit}: ${source.name}`,
    stored: fieldsOf(source),
    secretFields: ["secrets"]
  })
  const { change, value } = draft
  const reader = useReaders().find(({ name }) => name === source.config.reader)
  const isCrawled = type === "URL" || type === "SITEMAP"
  const save = useSaveAndClose({
    save: async () => {
      const newest = await queries.fetchQuery({ ...sourceQuery(source.id), staleTime: 0 })
      requireUnchanged(fieldsOf(source), fieldsOf(newest))
      const { address, name } = value
      const labels = parseLabels(value.labels)
      if (isCrawled) {
        const config = { ...otherConfigOf(source.config), ...crawlOf(type, value).config }
        return patchSource(source.id, { name, labels, config })
      }
      if (type === "CONNECTOR") {
        const config =
          reader === undefined ? {} : { config: { ...source.config, ...readerConfigOf(reader, value) } }
        return patchSource(source.id, { name, labels, ...config })
      }
      if (isCurated(type)) {
        const config = { ...source.config, ...curatedOf(type, value).config }
        return patchSource(source.id, { name, labels, config })
      }
      const { fileUrl, ...rest } = source.config
      return patchSource(
        source.id,
        fileUrl === undefined || fileUrl === address
          ? { name, labels }
          : { name, labels, config: { ...rest, fileUrl: address } }
      )
    },
    refresh: () => queries.invalidateQueries({ queryKey: ["sources"] }),
    onClose,
    draft
  })
  const { errorOf, general } = useIssues<string>(save.error, [...fieldPaths, ...readerPaths(reader)])
  return (
    <Form onSubmit={() => save.mutate()} problem={general} draft={draft}>
      <TextField
        label={common.name}
        required
        autoFocus
        value={value.name}
        onChange={(name) => change({ name })}
        error={errorOf("name")}
      />
      <ConflictingValue draft={draft} name="name" />
      {isCrawled ? (
        <CrawlFields
          type={type}
          form={value}
          onChange={change}
          errorOf={errorOf}
          conflictOf={(field) => <ConflictingValue draft={draft} name={field} />}
        />
      ) : null}
      {source.config.fileUrl === undefined ? null : (
        <>
          <TextField
            label={t.address}
            type="url"
            required
            value={value.address}
            onChange={(address) => change({ address })}
            error={errorOf("config.fileUrl")}
          />
          <ConflictingValue draft={draft} name="address" />
        </>
      )}
      {reader === undefined ? null : (
        <ReaderFields
          reader={reader}
          form={value}
          onChange={change}
          errorOf={errorOf}
          conflictOf={(field) => <ConflictingValue draft={draft} name={field} format={formatValue} />}
          isStored
        />
      )}
      {isCurated(type) ? (
        <CuratedFields
          type={type}
          form={value}
          onChange={change}
          errorOf={errorOf}
          conflictOf={(field) => <ConflictingValue draft={draft} name={field} format={formatValue} />}
        />
      ) : null}
      <LabelsField
        help={t.labelsHelp}
        value={value.labels}
        onChange={(labels) => change({ labels })}
        error={errorOf("labels")}
      />
      <ConflictingValue draft={draft} name="labels" />
      <p className={css["soft"]}>{isCurated(type) ? t.curatedHelp : t.editHelp}</p>
      <DialogActions draft={draft} busy={save.isPending} onClose={onClose} />
    </Form>
  )
}

const Facts = ({ source }: { readonly source: SourceDetail }) => {
  const t = useText(words)
  const names = useText(shared)
  const { config, labels = [] } = source
  const { settings } = readerFormOf(config)
  const readerText = useReaderText()
  const reader = useReaders().find(({ name }) => name === config.reader)
  const address = config.url ?? config.sitemapUrl ?? config.fileUrl
  const facts: ReadonlyArray<readonly [string, ReactNode]> = [
    [names.type, reader === undefined ? names[source.type] : readerText(reader.title)],
    [t.address, address],
    [t.fileName, config.fileName],
    [t.depth, config.maxDepth === undefined ? undefined : String(config.maxDepth)],
    [t.include, config.includePatterns?.join("\n")],
    [t.exclude, config.excludePatterns?.join("\n")],
    ...(reader?.fields ?? []).map(
      ({ label, name }) => [readerText(label), settings[name] === "" ? undefined : settings[name]] as const
    ),
    [t.refresh, address === undefined && reader === undefined ? undefined : t[config.refresh ?? "off"]],
    [t.labels, labels.length === 0 ? undefined : formatLabels(labels)],
    [t.id, <CopyableId key="id" id={source.id} label={t.id} />]
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

const SourceButtons = ({ source }: { readonly source: SourceDetail }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const [editing, setEditing] = useState(false)
  const sync = useMutation({
    mutationFn: (force: boolean) => syncSource(source.id, force),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["sources"] })
  })
  return (
    <>
      {sync.error === null ? null : <Problem problem={sync.error} />}
      <Dialog title={t.edit} isOpen={editing} onClose={() => setEditing(false)} wide>
        <EditSource source={source} onClose={() => setEditing(false)} />
      </Dialog>
      <Menu
        actions={[
          ...(isNeverRead(source) ? [] : [{ label: t.force, does: () => sync.mutate(true) }]),
          {
            label: t.remove,
            does: {
              title: t.remove,
              question: t.question(source.name),
              action: t.remove,
              onConfirm: async () => {
                await deleteSource(source.id)
                // Another page may have been opened meanwhile.
                if (window.location.pathname.includes(source.id)) navigate(`/sources?agent=${source.agentId}`)
                await queries.invalidateQueries({ queryKey: ["sources", "of"] })
              }
            }
          }
        ]}
      />
      <Button onClick={() => setEditing(true)}>{common.edit}</Button>
      <Button kind="primary" busy={sync.isPending} onClick={() => sync.mutate(false)}>
        {isNeverRead(source) ? t.first : t.sync}
      </Button>
    </>
  )
}

const SourceContent = ({ source }: { readonly source: SourceDetail }) => {
  const t = useText(words)
  const lastJob = `${source.latestJob?.id} ${source.latestJob?.status}`
  const documentsQuery = useInfiniteQuery(documents(source.id, "", lastJob))
  const reportQuery = useInfiniteQuery(crawl(source.id, "all", lastJob))
  return (
    <>
      <Documents source={source} />
      {/* Shown after the documents have loaded, so that they do not move. */}
      {documentsQuery.isPending || reportQuery.isPending ? null : (
        <>
          <CrawlReport source={source} />
          <Section title={t.made}>
            <Facts source={source} />
          </Section>
        </>
      )}
    </>
  )
}

const Source = ({ id, user }: { readonly id: string; readonly user: User }) => {
  const t = useText(words)
  const names = useText(shared)
  const query = useQuery(sourceQuery(id))
  return (
    <LoadedPage query={query} what="source" back="/sources">
      {(source) => (
        <Page
          title={source.name}
          parent={[`/sources?agent=${source.agentId}`, t.all]}
          lead={
            <span className={css["state"]}>
              <SourceState source={source} />
              {source.latestJob?.chunksCreated === null || source.latestJob === null ? null : (
                <span>{names.passages(source.latestJob.chunksCreated)}</span>
              )}
            </span>
          }
          actions={atLeast(user.role, "admin") ? <SourceButtons source={source} /> : undefined}
        >
          {source.error === null ? null : (
            <div role="alert" className={css["error"]}>
              <ReadingError error={source.error} />
            </div>
          )}
          <SourceContent source={source} />
        </Page>
      )}
    </LoadedPage>
  )
}

export default Source
