/** Adding a source: a website, a sitemap, something by its address, or files from this computer. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useId, useState } from "react"
import { createSource, sources, uploadSource } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { Actions, Dialog } from "../../components/Dialog.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { addressOf, configOf, CrawlFields, emptyCrawl } from "./Crawling.tsx"
import css from "./AddSource.module.css"
import { words as shared } from "./words.ts"

const kinds = ["URL", "SITEMAP", "upload", "bulk-upload", "FILE", "IMAGE"] as const
type Kind = (typeof kinds)[number]

const words = texts(
  {
    kind: "What it is",
    upload: "Document from this computer",
    bulk: "ZIP of documents from this computer",
    file: "Document by its address",
    image: "Image by its address",
    address: "Address",
    choose: "File",
    nameHelp: "As it is shown beside answers. Left empty, it is the address or the file's name."
  },
  {
    kind: "Was es ist",
    upload: "Dokument von diesem Rechner",
    bulk: "ZIP von Dokumenten von diesem Rechner",
    file: "Dokument über seine Adresse",
    image: "Bild über seine Adresse",
    address: "Adresse",
    choose: "Datei",
    nameHelp: "So steht sie neben Antworten. Leer heißt: die Adresse oder der Dateiname."
  }
)

const nameOf = (address: string) =>
  URL.canParse(address) ? `${new URL(address).host}${new URL(address).pathname}`.slice(0, 200) : address

interface Props {
  readonly agentId: string
  readonly isOpen: boolean
  readonly onClose: () => void
}

const Form = ({ agentId, onClose }: Omit<Props, "isOpen">) => {
  const t = useText(words)
  const names = useText(shared)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const fileId = useId()
  const [kind, setKind] = useState<Kind>("URL")
  const [name, setName] = useState("")
  const [crawl, setCrawl] = useState(emptyCrawl)
  const [address, setAddress] = useState("")
  const [file, setFile] = useState<File | null>(null)

  const add = useMutation({
    mutationFn: () => {
      if (kind === "upload" || kind === "bulk-upload") {
        return file === null
          ? Promise.reject(new Error("There is no file."))
          : uploadSource(kind, agentId, name, file)
      }
      const config =
        kind === "URL" || kind === "SITEMAP" ? configOf(kind, crawl) : { fileUrl: addressOf(address) }
      const called = nameOf(addressOf(kind === "URL" || kind === "SITEMAP" ? crawl.url : address))
      return createSource({ agentId, type: kind, name: name === "" ? called : name, config })
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: sources(agentId).queryKey })
      onClose()
    }
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <form onSubmit={submit} className={css["form"]}>
      {add.error === null ? null : <Problem problem={add.error} />}
      <Select
        label={t.kind}
        options={[
          ["URL", names.URL],
          ["SITEMAP", names.SITEMAP],
          ["upload", t.upload],
          ["bulk-upload", t.bulk],
          ["FILE", t.file],
          ["IMAGE", t.image]
        ]}
        value={kind}
        onChange={setKind}
      />
      {kind === "URL" || kind === "SITEMAP" ? (
        <CrawlFields type={kind} form={crawl} onChange={setCrawl} />
      ) : null}
      {kind === "FILE" || kind === "IMAGE" ? (
        <TextField
          label={t.address}
          inputMode="url"
          spellCheck="false"
          placeholder={kind === "FILE" ? "https://example.com/handbook.pdf" : "https://example.com/menu.png"}
          isRequired
          value={address}
          onChange={setAddress}
        />
      ) : null}
      {kind === "upload" || kind === "bulk-upload" ? (
        <div className={css["file"]}>
          <label htmlFor={fileId}>{t.choose}</label>
          <input
            id={fileId}
            type="file"
            required
            {...(kind === "bulk-upload" ? { accept: ".zip,application/zip" } : {})}
            onChange={({ target }) => setFile(target.files?.[0] ?? null)}
          />
        </div>
      ) : null}
      <TextField label={common.name} help={t.nameHelp} value={name} onChange={setName} />
      <Actions>
        <Button onPress={onClose}>{common.cancel}</Button>
        <Button kind="primary" type="submit" busy={add.isPending}>
          {names.add}
        </Button>
      </Actions>
    </form>
  )
}

export const AddSource = ({ agentId, isOpen, onClose }: Props) => {
  const names = useText(shared)
  return (
    <Dialog title={names.add} isOpen={isOpen} onClose={onClose} wide>
      <Form agentId={agentId} onClose={onClose} />
    </Dialog>
  )
}
