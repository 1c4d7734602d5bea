/** Adding a source: a website, a sitemap, a file by its address, files from this computer, or text. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useEffect, useState } from "react"
import { membersOf } from "../../api/membersOf.ts"
import { createSource, sources, type SourceType } from "../../api/Sources.ts"
import { uploadSource } from "../../api/sources/Uploads.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { FileField, Select, TextField } from "../../components/Field.tsx"
import { MoreOptions } from "../../components/MoreOptions.tsx"
import { Progress } from "../../components/Progress.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { CuratedFields, type CuratedForm, curatedOf, curatedPaths, emptyCurated } from "./CuratedFields.tsx"
import { addressOf } from "./addressOf.ts"
import { CrawlFields, crawlOf, crawlPaths, emptyCrawl } from "./CrawlFields.tsx"
import { LabelsField, parseLabels } from "./LabelsField.tsx"
import {
  emptyReader,
  readerConfigOf,
  ReaderFields,
  readerPaths,
  useReaders,
  useReaderText
} from "./ReaderFields.tsx"
import { words as shared } from "./words.ts"

/** The built-in kinds. A ZIP file can only be uploaded. */
type BuiltInKind = Exclude<SourceType, "BULK_UPLOAD" | "CONNECTOR"> | "upload" | "bulk-upload"
/** A registered reader, by its name. */
type ReaderKind = `reader:${string}`
type Kind = BuiltInKind | ReaderKind

const isReader = (kind: Kind): kind is ReaderKind => kind.startsWith("reader:")

const words = texts(
  {
    kind: "What it is",
    upload: "Document from this computer",
    bulk: "ZIP of documents from this computer",
    file: "Document by its address",
    image: "Image by its address",
    address: "Address",
    choose: "File",
    sending: (sent: string, total: string) => `Sending: ${sent} of ${total}`,
    nameHelp: "As it is shown beside answers. Left empty, it is the address or the file's name.",
    labelsHelp:
      "Separated by commas. With one, only keys that have it may read the source; without, every key."
  },
  {
    kind: "Was es ist",
    upload: "Dokument von diesem Rechner",
    bulk: "ZIP von Dokumenten von diesem Rechner",
    file: "Dokument über seine Adresse",
    image: "Bild über seine Adresse",
    address: "Adresse",
    choose: "Datei",
    sending: (sent: string, total: string) => `Wird gesendet: ${sent} von ${total}`,
    nameHelp: "So steht sie neben Antworten. Leer heißt: die Adresse oder der Dateiname.",
    labelsHelp:
      "Durch Kommas getrennt. Mit einem lesen die Quelle nur Schlüssel, die es haben, ohne eines alle."
  }
)

const nameFromAddress = (address: string) =>
  URL.canParse(address) ? `${new URL(address).host}${new URL(address).pathname}`.slice(0, 200) : address

interface Props {
  readonly agentId: string
  readonly isOpen: boolean
  readonly onClose: () => void
  /** The kind that is selected when the form opens. */
  readonly kind?: Kind
  /** Opens the form for a curated answer that corrects a passage, instead of a form for any source. */
  readonly correction?: Correction
}

interface Correction {
  /** The passage's id. Each passage has its own draft. */
  readonly id: string
  readonly title: string
  readonly help: string
  readonly question: string
  readonly answer: string
}

/** Maximum lengths of a question and an answer, in characters. */
const maxQuestionLength = 500
const maxAnswerLength = 4_000

const pairsOf = ({ answer, question }: Correction): CuratedForm["pairs"] => [
  { question: question.slice(0, maxQuestionLength), answer: answer.slice(0, maxAnswerLength) }
]

/** The form of one kind of source. */
interface KindForm {
  readonly title: string
  /** Resolves to null if the form was closed meanwhile and nothing was created. */
  readonly create: () => Promise<object | null>
  /** `wrapOptional` wraps the fields that most people leave unchanged. */
  readonly fields: (
    errorOf: (path: string) => string | undefined,
    wrapOptional: (fields: ReactNode) => ReactNode
  ) => ReactNode
}

const defaultKind = (): Kind => "URL"
const emptyForm = {
  kind: defaultKind(),
  name: "",
  labels: "",
  address: "",
  crawl: emptyCrawl,
  curated: emptyCurated,
  ...emptyReader
}
const initialFields = (kind: Kind, correction: Correction | undefined): typeof emptyForm =>
  correction === undefined
    ? { ...emptyForm, kind }
    : { ...emptyForm, kind: "QA", curated: { ...emptyCurated, pairs: pairsOf(correction) } }
const fieldPaths = ["name", "labels", "config.fileUrl", ...crawlPaths, ...curatedPaths] as const

const AddSourceForm = ({
  agentId,
  correction,
  kind: initialKind = "URL",
  onClose
}: Omit<Props, "isOpen">) => {
  const t = useText(words)
  const names = useText(shared)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const draft = useDraft({
    name: correction === undefined ? `source.${agentId}` : `source.${agentId}.${correction.id}`,
    title: correction?.title ?? names.add,
    stored: initialFields(initialKind, correction),
    secretFields: ["secrets"]
  })
  const { change, value } = draft
  const { address, crawl, curated, kind, name } = value
  const labels = parseLabels(value.labels)
  const readerText = useReaderText()
  const readers = useReaders()
  const reader = readers.find((one) => kind === `reader:${one.name}`)
  const [file, setFile] = useState<File | null>(null)
  const { bytes } = useFormat()
  const [progress, setProgress] = useState<{ readonly sent: number; readonly total: number } | null>(null)
  /** Aborted when the form is closed. */
  const [closing] = useState(() => new AbortController())
  useEffect(() => () => closing.abort(), [closing])

  const commonFields = (defaultName: string) => ({ agentId, labels, name: name === "" ? defaultName : name })
  const uploadForm = (type: "upload" | "bulk-upload"): KindForm => ({
    title: type === "upload" ? t.upload : t.bulk,
    create: () =>
      file === null
        ? Promise.reject(new Error("There is no file."))
        : uploadSource(
            type,
            { agentId, name, labels, file },
            { signal: closing.signal, onProgress: (sent, total) => setProgress({ sent, total }) }
          ).catch((problem: unknown) => {
            if (closing.signal.aborted) return null
            throw problem
          }),
    fields: () => (
      <>
        <FileField
          label={t.choose}
          file={file}
          onChange={setFile}
          {...(type === "bulk-upload" ? { accept: ".zip,application/zip" } : {})}
        />
        {progress === null || !add.isPending ? null : (
          <Progress
            label={t.sending(bytes(progress.sent), bytes(progress.total))}
            value={progress.total === 0 ? 0 : (100 * progress.sent) / progress.total}
          />
        )}
      </>
    )
  })
  const crawlForm = (type: "URL" | "SITEMAP"): KindForm => ({
    title: names[type],
    create: () =>
      createSource({ ...commonFields(nameFromAddress(addressOf(crawl.url))), ...crawlOf(type, crawl) }),
    fields: (errorOf, wrapOptional) => (
      <CrawlFields
        type={type}
        form={crawl}
        onChange={(fields) => change({ crawl: { ...crawl, ...fields } })}
        errorOf={errorOf}
        wrapOptional={wrapOptional}
      />
    )
  })
  const curatedForm = (type: "TEXT" | "QA"): KindForm => ({
    title: names[type],
    create: () => createSource({ ...commonFields(names[type]), ...curatedOf(type, curated) }),
    fields: (errorOf) => (
      <CuratedFields
        type={type}
        form={curated}
        onChange={(fields) => change({ curated: { ...curated, ...fields } })}
        errorOf={errorOf}
      />
    )
  })
  const addressForm = (type: "FILE" | "IMAGE", title: string, placeholder: string): KindForm => ({
    title,
    create: () => {
      const fileUrl = addressOf(address)
      return createSource({ ...commonFields(nameFromAddress(fileUrl)), type, config: { fileUrl } })
    },
    fields: (errorOf) => (
      <TextField
        label={t.address}
        inputMode="url"
        spellCheck="false"
        placeholder={placeholder}
        required
        value={address}
        onChange={(typed) => change({ address: typed })}
        error={errorOf("config.fileUrl")}
      />
    )
  })
  const forms: Record<BuiltInKind, KindForm> = {
    URL: crawlForm("URL"),
    SITEMAP: crawlForm("SITEMAP"),
    upload: uploadForm("upload"),
    "bulk-upload": uploadForm("bulk-upload"),
    FILE: addressForm("FILE", t.file, "https://example.com/handbook.pdf"),
    IMAGE: addressForm("IMAGE", t.image, "https://example.com/menu.png"),
    TEXT: curatedForm("TEXT"),
    QA: curatedForm("QA")
  }

  const add = useMutation({
    mutationFn: () => {
      if (!isReader(kind)) return forms[kind].create()
      if (reader === undefined) return Promise.reject(new Error("There is no such reader."))
      const config = readerConfigOf(reader, value)
      return createSource({ ...commonFields(readerText(reader.title)), type: "CONNECTOR", config })
    },
    onSuccess: async (created) => {
      if (created === null) return
      draft.saved()
      await queries.invalidateQueries({ queryKey: sources(agentId).queryKey })
      onClose()
    }
  })
  const { errorOf, general } = useIssues<string>(add.error, [...fieldPaths, ...readerPaths(reader)])
  const nameField = (
    <TextField
      label={common.name}
      help={t.nameHelp}
      value={name}
      onChange={(typed) => change({ name: typed })}
      error={errorOf("name")}
    />
  )
  // A text or questions have no address or file that could give the source a name.
  const isCurated = kind === "TEXT" || kind === "QA"
  const hasOptionalInput = [isCurated ? "" : name, value.labels, crawl.include, crawl.exclude].some(
    (typed) => typed !== ""
  )
  const hasOptionalError = ["name", "labels", "config.includePatterns", "config.excludePatterns"].some(
    errorOf
  )
  const wrapOptional = (ownFields: ReactNode) => (
    <MoreOptions isNeeded={hasOptionalInput || hasOptionalError}>
      {ownFields}
      {isCurated ? null : nameField}
      <LabelsField
        help={t.labelsHelp}
        value={value.labels}
        onChange={(typed) => change({ labels: typed })}
        error={errorOf("labels")}
      />
    </MoreOptions>
  )
  return (
    <Form onSubmit={() => add.mutate()} problem={general}>
      {correction === undefined ? (
        <Select
          label={t.kind}
          options={[
            ...membersOf(forms).map((one) => [one, forms[one].title] as const),
            ...readers.map((one) => [`reader:${one.name}` as const, readerText(one.title)] as const)
          ]}
          value={kind}
          onChange={(chosen) => change({ kind: chosen })}
        />
      ) : (
        <p>{correction.help}</p>
      )}
      {isCurated ? nameField : null}
      {isReader(kind) ? null : forms[kind].fields(errorOf, wrapOptional)}
      {reader === undefined ? null : (
        <ReaderFields reader={reader} form={value} onChange={change} errorOf={errorOf} />
      )}
      {kind === "URL" || kind === "SITEMAP" ? null : wrapOptional(null)}
      <DialogActions draft={draft} busy={add.isPending} onClose={onClose} action={names.add} />
    </Form>
  )
}

export const AddSource = ({ isOpen, ...props }: Props) => {
  const names = useText(shared)
  return (
    <Dialog title={props.correction?.title ?? names.add} isOpen={isOpen} onClose={props.onClose} wide>
      <AddSourceForm {...props} />
    </Dialog>
  )
}
