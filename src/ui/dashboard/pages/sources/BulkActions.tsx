/** Actions on the selected sources. Sends a few requests at a time, and shows the progress. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { deleteSource, type SourceItem, syncSource } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Problem } from "../../components/Problem.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Sources.module.css"

const words = texts(
  {
    chosen: (count: string) => `${count} selected`,
    sync: "Sync",
    clear: "Clear selection",
    remove: "Delete sources",
    question: (count: string) =>
      count === "1"
        ? "1 source and everything that was read from it will be gone, and is never found again."
        : `${count} sources and everything that was read from them will be gone, and are never found again.`,
    progress: (done: string, all: string) => `${done} of ${all} …`,
    failed: (count: string, all: string) => `${count} of ${all} could not be done, and stay selected.`
  },
  {
    chosen: (count: string) => `${count} ausgewählt`,
    sync: "Synchronisieren",
    clear: "Auswahl aufheben",
    remove: "Quellen löschen",
    question: (count: string) =>
      count === "1"
        ? "1 Quelle und alles daraus Gelesene ist dann fort und wird nie wieder gefunden."
        : `${count} Quellen und alles daraus Gelesene sind dann fort und werden nie wieder gefunden.`,
    progress: (done: string, all: string) => `${done} von ${all} …`,
    failed: (count: string, all: string) => `${count} von ${all} gingen nicht und bleiben ausgewählt.`
  }
)

/** Maximum number of concurrent requests. */
const maxConcurrentRequests = 4

interface Props {
  readonly chosen: ReadonlyArray<SourceItem>
  readonly onChange: (ids: ReadonlySet<string>) => void
}

export const BulkActions = ({ chosen, onChange }: Props) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { number } = useFormat()
  const queries = useQueryClient()
  const [progress, setProgress] = useState<{ readonly done: number; readonly all: number } | null>(null)
  const [failed, setFailed] = useState<{
    readonly count: number
    readonly all: number
    readonly problem: unknown
  } | null>(null)

  const runOnAll = async (act: (id: string) => Promise<unknown>) => {
    const remainingIds = chosen.map(({ id }) => id)
    const all = remainingIds.length
    const failedIds = new Set<string>()
    let problem: unknown = null
    let done = 0
    setFailed(null)
    setProgress({ done, all })
    const worker = async (): Promise<void> => {
      for (let id = remainingIds.shift(); id !== undefined; id = remainingIds.shift()) {
        const current = id
        await act(current).catch((reason: unknown) => {
          failedIds.add(current)
          problem ??= reason
        })
        done += 1
        setProgress({ done, all })
      }
    }
    await Promise.all(Array.from({ length: maxConcurrentRequests }, worker))
    await queries.invalidateQueries({ queryKey: ["sources"] })
    setProgress(null)
    if (failedIds.size > 0) setFailed({ count: failedIds.size, all, problem })
    onChange(failedIds)
  }

  if (chosen.length === 0 && failed === null) return null
  const busy = progress !== null
  return (
    <div className={css["bulk"]}>
      <span role="status">
        {busy ? t.progress(number(progress.done), number(progress.all)) : t.chosen(number(chosen.length))}
      </span>
      <Button busy={busy} onClick={() => void runOnAll((id) => syncSource(id, false))}>
        {t.sync}
      </Button>
      <ConfirmButton
        trigger={
          <Button kind="quiet" busy={busy}>
            {common.delete}
          </Button>
        }
        title={t.remove}
        question={t.question(number(chosen.length))}
        action={common.delete}
        onConfirm={() => runOnAll(deleteSource)}
      />
      <Button
        kind="quiet"
        busy={busy}
        onClick={() => {
          setFailed(null)
          onChange(new Set())
        }}
      >
        {t.clear}
      </Button>
      {failed === null ? null : (
        <div className={css["failed"]}>
          <p>{t.failed(number(failed.count), number(failed.all))}</p>
          <Problem problem={failed.problem} />
        </div>
      )}
    </div>
  )
}
