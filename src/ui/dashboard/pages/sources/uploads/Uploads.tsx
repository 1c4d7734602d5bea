/** The list of uploads, and a drop of files anywhere on the page. */
import { useQueryClient } from "@tanstack/react-query"
import { memo, type ReactNode, useEffect, useMemo, useState } from "react"
import { Link } from "wouter"
import type { User } from "../../../api/Session.ts"
import { sources } from "../../../api/Sources.ts"
import { Badge } from "../../../components/Badge.tsx"
import { Button } from "../../../components/Button.tsx"
import { Card } from "../../../components/Page.tsx"
import { Progress } from "../../../components/Progress.tsx"
import { commonTexts } from "../../../text/commonTexts.ts"
import { useFormat } from "../../../text/Format.ts"
import { texts, useText } from "../../../text/Language.tsx"
import { useReason } from "../../../text/useReason.ts"
import { ReadingError } from "../ReadingError.tsx"
import { words as shared } from "../words.ts"
import { selectionFromDrop, maxFiles, maxUploadBytes, type Selection } from "./files.ts"
import { add, cancel, force, type UploadTarget, retry, type Upload, useUploads } from "./queue.ts"
import css from "./Uploads.module.css"

const words = texts(
  {
    title: "Uploads",
    drop: "Drop files or folders to add them",
    waiting: "Waiting",
    sending: "Sending",
    sent: (sent: string, total: string) => `${sent} of ${total}`,
    reading: "Reading",
    duplicate: "Already there",
    duplicateOf: (name: string) => `Not sent: “${name}” has the same content.`,
    force: "Add anyway",
    forceOne: (name: string) => `Add anyway: ${name}`,
    failed: "Failed",
    refused: "Not sent",
    too_large: (limit: string) => `Larger than ${limit}.`,
    unsupported_type: "Neither a document nor a picture nor text, so it cannot be read.",
    empty: "The file is empty.",
    unreadable: "The browser cannot read the file. It may have been moved or deleted.",
    gone: "The source was deleted.",
    cancelOne: (name: string) => `Cancel: ${name}`,
    retryOne: (name: string) => `Try again: ${name}`,
    dismiss: "Remove from the list",
    dismissOne: (name: string) => `Remove from the list: ${name}`,
    cancelAll: "Cancel all",
    retryAll: "Try all failed again",
    clear: "Clear finished",
    running: (all: string) => (all === "1" ? "1 file is being added." : `${all} files are being added.`),
    done: (done: string, all: string) => `${done} of ${all} added.`,
    bad: (count: string) => `${count} not added.`,
    cut: (limit: string) => `Only the first ${limit} files were taken.`
  },
  {
    title: "Uploads",
    drop: "Dateien oder Ordner hier loslassen",
    waiting: "Wartet",
    sending: "Wird gesendet",
    sent: (sent: string, total: string) => `${sent} von ${total}`,
    reading: "Wird gelesen",
    duplicate: "Schon da",
    duplicateOf: (name: string) => `Nicht gesendet: „${name}“ hat denselben Inhalt.`,
    force: "Trotzdem hinzufügen",
    forceOne: (name: string) => `Trotzdem hinzufügen: ${name}`,
    failed: "Fehlgeschlagen",
    refused: "Nicht gesendet",
    too_large: (limit: string) => `Größer als ${limit}.`,
    unsupported_type: "Weder Dokument noch Bild noch Text, daher nicht lesbar.",
    empty: "Die Datei ist leer.",
    unreadable: "Der Browser kann die Datei nicht lesen. Vielleicht wurde sie verschoben oder gelöscht.",
    gone: "Die Quelle wurde gelöscht.",
    cancelOne: (name: string) => `Abbrechen: ${name}`,
    retryOne: (name: string) => `Erneut versuchen: ${name}`,
    dismiss: "Aus der Liste nehmen",
    dismissOne: (name: string) => `Aus der Liste nehmen: ${name}`,
    cancelAll: "Alle abbrechen",
    retryAll: "Alle fehlgeschlagenen erneut versuchen",
    clear: "Erledigte ausblenden",
    running: (all: string) =>
      all === "1" ? "1 Datei wird hinzugefügt." : `${all} Dateien werden hinzugefügt.`,
    done: (done: string, all: string) => `${done} von ${all} hinzugefügt.`,
    bad: (count: string) => `${count} nicht hinzugefügt.`,
    cut: (limit: string) => `Nur die ersten ${limit} Dateien wurden übernommen.`
  }
)

const isUnsent = ({ state: { tag } }: Upload) => tag === "waiting" || tag === "sending"
const isUnfinished = (upload: Upload) => isUnsent(upload) || upload.state.tag === "reading"
const isFailed = ({ state: { tag } }: Upload) => tag === "failed" || tag === "unread"

const UploadState = ({ upload: { state } }: { readonly upload: Upload }) => {
  const t = useText(words)
  const names = useText(shared)
  const { bytes } = useFormat()
  const reason = useReason()
  const failedState = (badge: string, why: ReactNode) => (
    <>
      <Badge tone="bad">{badge}</Badge>
      <span className={css["error"]}>{why}</span>
    </>
  )
  switch (state.tag) {
    case "waiting":
      return <Badge tone="neutral">{t.waiting}</Badge>
    case "sending": {
      const label = `${t.sending}: ${t.sent(bytes(state.sent), bytes(state.total))}`
      return <Progress label={label} value={state.total === 0 ? 0 : (100 * state.sent) / state.total} />
    }
    case "reading":
      return <Progress label={t.reading} value={state.progress} />
    case "ready":
      return (
        <>
          <Badge tone="good">{names.READY}</Badge>
          <span className={css["soft"]}>{names.passages(state.passages)}</span>
        </>
      )
    case "duplicate":
      return (
        <>
          <Badge tone="warn">{t.duplicate}</Badge>
          <span>{t.duplicateOf(state.of)}</span>
        </>
      )
    case "refused":
      return failedState(
        t.refused,
        state.why === "too_large" ? t.too_large(bytes(maxUploadBytes)) : t[state.why]
      )
    case "failed":
      return failedState(t.failed, reason(state.problem).sentence)
    case "unread":
      return failedState(t.failed, state.error === null ? t.gone : <ReadingError error={state.error} />)
  }
}

/** Memoized, because there may be a thousand rows. */
const Row = memo(({ upload }: { readonly upload: Upload }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { bytes } = useFormat()
  const { file, key, path, sourceId, state } = upload
  const dismiss = () => cancel([key])
  return (
    <li className={css["row"]}>
      <span className={css["name"]} lang="">
        {sourceId === null ? path : <Link href={`/sources/${sourceId}`}>{path}</Link>}
      </span>
      <span className={css["size"]}>{bytes(file.size)}</span>
      <span className={css["state"]}>
        <UploadState upload={upload} />
      </span>
      <span className={css["actions"]}>
        {state.tag === "duplicate" ? (
          <Button kind="quiet" aria-label={t.forceOne(path)} onClick={() => force(key)}>
            {t.force}
          </Button>
        ) : null}
        {isFailed(upload) ? (
          <Button kind="quiet" aria-label={t.retryOne(path)} onClick={() => retry(upload)}>
            {common.retry}
          </Button>
        ) : null}
        {isUnsent(upload) ? (
          <Button kind="quiet" aria-label={t.cancelOne(path)} onClick={dismiss}>
            {common.cancel}
          </Button>
        ) : state.tag === "reading" ? null : (
          <Button kind="quiet" icon aria-label={t.dismissOne(path)} onClick={dismiss}>
            ×
          </Button>
        )}
      </span>
    </li>
  )
})

/** True while files are dragged over the window. Without it, the browser would open a dropped file. */
const useDrop = (onDrop: (selection: Selection) => void): boolean => {
  const [isDragging, setDragging] = useState(false)
  useEffect(() => {
    const isFiles = ({ dataTransfer, target }: DragEvent) =>
      dataTransfer?.types.includes("Files") === true && !(target instanceof HTMLInputElement)
    const onDragOver = (event: DragEvent) => {
      if (!isFiles(event)) return
      event.preventDefault()
      setDragging(true)
    }
    const onDragLeave = ({ relatedTarget }: DragEvent) => {
      if (relatedTarget === null) setDragging(false)
    }
    const onFilesDropped = (event: DragEvent) => {
      setDragging(false)
      if (!isFiles(event) || event.dataTransfer === null) return
      event.preventDefault()
      void selectionFromDrop(event.dataTransfer).then(onDrop)
    }
    window.addEventListener("dragover", onDragOver)
    window.addEventListener("dragleave", onDragLeave)
    window.addEventListener("drop", onFilesDropped)
    return () => {
      window.removeEventListener("dragover", onDragOver)
      window.removeEventListener("dragleave", onDragLeave)
      window.removeEventListener("drop", onFilesDropped)
    }
  }, [onDrop])
  return isDragging
}

const Summary = ({ uploads }: { readonly uploads: ReadonlyArray<Upload> }) => {
  const t = useText(words)
  const { number } = useFormat()
  const total = uploads.length
  const unfinishedCount = uploads.filter(isUnfinished).length
  const readyCount = uploads.filter(({ state }) => state.tag === "ready").length
  const failedCount = total - unfinishedCount - readyCount
  const isTruncated = uploads.some(({ isSelectionTruncated }) => isSelectionTruncated)
  const parts = [
    unfinishedCount > 0 ? t.running(number(unfinishedCount)) : null,
    readyCount > 0 || unfinishedCount === 0 ? t.done(number(readyCount), number(total)) : null,
    failedCount > 0 ? t.bad(number(failedCount)) : null,
    isTruncated ? t.cut(number(maxFiles)) : null
  ]
  const summary = parts.filter((part) => part !== null).join(" ")
  // Screen readers announce it at the start, at each failure and at the end, not for each file.
  const announced = useMemo(() => summary, [unfinishedCount === 0, failedCount, isTruncated, total])
  return (
    <>
      <p className={css["soft"]}>{summary}</p>
      <div role="status" className="visually-hidden">
        {announced}
      </div>
    </>
  )
}

interface Props {
  readonly agentId: string
  readonly user: User
}

export const Uploads = ({ agentId, user }: Props) => {
  const t = useText(words)
  const queries = useQueryClient()
  const target: UploadTarget = useMemo(() => ({ agentId, userId: user.id }), [agentId, user.id])
  const uploads = useUploads(target)
  const onDrop = useMemo(() => (selection: Selection) => add(target, selection), [target])
  const isDragging = useDrop(onDrop)
  const createdCount = uploads.filter(({ sourceId }) => sourceId !== null).length
  useEffect(() => {
    if (createdCount > 0) void queries.invalidateQueries({ queryKey: sources(agentId).queryKey.slice(0, 3) })
  }, [createdCount, agentId, queries])
  const failed = uploads.filter(isFailed)
  const unsent = uploads.filter(isUnsent)
  const finished = uploads.filter((upload) => !isUnfinished(upload))
  const keysOf = (some: ReadonlyArray<Upload>) => some.map(({ key }) => key)
  return (
    <>
      {isDragging ? (
        <div className={css["over"]}>
          <p>{t.drop}</p>
        </div>
      ) : null}
      {uploads.length === 0 ? null : (
        <Card
          title={t.title}
          actions={
            <span className={css["actions"]}>
              {failed.length > 1 ? (
                <Button kind="quiet" onClick={() => failed.forEach(retry)}>
                  {t.retryAll}
                </Button>
              ) : null}
              {unsent.length > 1 ? (
                <Button kind="quiet" onClick={() => cancel(keysOf(unsent))}>
                  {t.cancelAll}
                </Button>
              ) : null}
              {finished.length > 1 ? (
                <Button kind="quiet" onClick={() => cancel(keysOf(finished))}>
                  {t.clear}
                </Button>
              ) : null}
            </span>
          }
        >
          <Summary uploads={uploads} />
          <ul className={css["list"]} aria-label={t.title}>
            {uploads.map((upload) => (
              <Row key={upload.key} upload={upload} />
            ))}
          </ul>
        </Card>
      )}
    </>
  )
}
